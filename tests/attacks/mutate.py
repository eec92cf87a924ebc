"""Change the rules that hold now or from the next start on."""

from __future__ import annotations

from functools import partial

from attack import Attack

mutate = partial(Attack, "mutate")

CASES: list[Attack] = []
