"""Runs a script that is to be refused: ``watched.py SCRIPT PORTS...``; prints how it ended and the lines to add."""

import importlib
import sys

import pysandboxes

sys.argv = sys.argv[1:]
try:
    importlib.import_module(sys.argv[0].removesuffix(".py"))
    print("ENDED well")
except BaseException as error:
    print("ENDED", type(error).__name__)
    print("LINES", *sorted({line for denial in pysandboxes.denials(error) for line in denial.add}))
