"""libcurl: the connection is made by native code."""

import io
import json
import sys

import pycurl

URL = f"http://127.0.0.1:{json.loads(sys.argv[1])['http']}"


def get(path: str) -> bytes:
    body = io.BytesIO()
    curl = pycurl.Curl()
    curl.setopt(curl.URL, URL + path)
    curl.setopt(curl.WRITEDATA, body)
    curl.setopt(curl.TIMEOUT, 10)
    curl.setopt(curl.NOPROXY, "*")
    curl.perform()
    print(curl.getinfo(curl.RESPONSE_CODE), curl.getinfo(curl.PRIMARY_IP))
    curl.close()
    return body.getvalue()


print(get("/hello").decode(), len(get("/large")))
