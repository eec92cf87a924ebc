"""IPython's prompt with a mark: what is typed there runs in a sandbox.

``python-sb`` names this class on IPython's command line; nothing else imports it.
"""

from __future__ import annotations

import sys

from IPython.terminal.prompts import Prompts as Plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Prompts(Plain):
    """IPython's own, after a warning sign."""

    def in_prompt_tokens(self) -> list[tuple[Any, str]]:
        tokens: list[tuple[Any, str]] = super().in_prompt_tokens()  # type: ignore[no-untyped-call]
        encoding = getattr(sys.stdout, "encoding", None) or ""
        return [(tokens[-1][0], "\N{WARNING SIGN} " if encoding.lower().startswith("utf") else "! "), *tokens]
