"""A FastAPI application on loopback whose tools are sandboxed: prints its port, ends by SIGTERM.

What a tool prints and logs comes back with the answer, which shows in whose context it was written.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import uvicorn
import web_tools
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from pysandboxes import SandBoxError, denials, sandboxes

told: ContextVar[list[str]] = ContextVar("told")


class Told(io.TextIOBase):
    """A standard stream that belongs to the request."""

    def write(self, text: str) -> int:
        told.get().append(text)
        return len(text)


class ToldRecords(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        told.get().append(f"{record.name}: {record.getMessage()}\n")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with nullcontext() if os.environ.get("BARE") else sandboxes(sandboxes_config=os.environ["PROFILE"]):
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(SandBoxError)
async def refused(request: Request, exc: SandBoxError) -> JSONResponse:
    """A refusal is the client's, with words that a language model can act on; anything else is ours."""
    found = denials(exc)
    if not found:
        raise exc
    return JSONResponse({"detail": [denial.text_for_model for denial in found]}, status_code=403)


@app.get("/double/{number}")
def double(number: int) -> dict[str, Any]:
    return {"value": web_tools.double(number)}


@app.get("/adouble/{number}")
async def adouble(number: int) -> dict[str, Any]:
    return {"value": await web_tools.adouble(number)}


@app.get("/work/{number}")
def work(number: int) -> dict[str, Any]:
    told.set([])
    return {"value": web_tools.work(number), "told": "".join(told.get())}


@app.get("/awork/{number}")
async def awork(number: int) -> dict[str, Any]:
    told.set([])
    return {"value": await web_tools.awork(number), "told": "".join(told.get())}


@app.get("/read")
def read(path: str) -> dict[str, Any]:
    return {"text": web_tools.read(path)}


@app.get("/aread")
async def aread(path: str) -> dict[str, Any]:
    return {"text": await web_tools.aread(path)}


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    sys.stdout = Told()  # type: ignore[assignment]
    logging.getLogger("tool").addHandler(ToldRecords())
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=60)).run(sockets=[listener])
