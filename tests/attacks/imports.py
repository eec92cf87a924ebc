"""Import what the profile does not grant."""

from __future__ import annotations

from functools import partial

from attack import Attack

imported = partial(Attack, "import")

CASES: list[Attack] = []
