"""Change, create or remove what no rule lets be written."""

from __future__ import annotations

from functools import partial

from attack import Attack

write = partial(Attack, "write")

CASES: list[Attack] = []
