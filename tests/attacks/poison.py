"""Make a learning run write rules that are wider than what happened."""

from __future__ import annotations

from functools import partial

from attack import Attack

poison = partial(Attack, "poison")

CASES: list[Attack] = []
