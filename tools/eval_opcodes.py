"""Which instructions evaluated code may have: writes bindings/guard/eval_opcodes.inc for the interpreters that it is given.

    python tools/eval_opcodes.py python3.11 python3.12 python3.13

What is not in ALLOWED is refused, so an instruction that a new CPython adds is refused until somebody has read what it does.
None of them reads or sets an attribute, operates by itself, calls a method, formats a text or matches a class: helpers in C
do (docs/implementation.md, "Strings that become code"). A few are looked at besides: PUSH_NULL and LOAD_GLOBAL (what is called
must be a helper), CALL_INTRINSIC_1 and _2 (`import *` and type parameters are refused).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ALLOWED = """
CACHE NOP RESUME EXTENDED_ARG POP_TOP PUSH_NULL COPY SWAP LOAD_CONST RETURN_VALUE RETURN_CONST LOAD_NAME
STORE_NAME DELETE_NAME LOAD_GLOBAL STORE_GLOBAL DELETE_GLOBAL LOAD_FAST STORE_FAST DELETE_FAST LOAD_FAST_CHECK
LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST LOAD_DEREF STORE_DEREF
DELETE_DEREF LOAD_CLOSURE LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS
MAKE_CELL COPY_FREE_VARS MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE SETUP_ANNOTATIONS LOAD_BUILD_CLASS PRECALL
KW_NAMES CALL CALL_KW CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_INTRINSIC_2 BUILD_TUPLE BUILD_LIST BUILD_SET
BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SLICE LIST_APPEND LIST_EXTEND LIST_TO_TUPLE SET_ADD SET_UPDATE MAP_ADD
DICT_UPDATE DICT_MERGE UNPACK_SEQUENCE UNPACK_EX BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR COMPARE_OP IS_OP
CONTAINS_OP UNARY_NEGATIVE UNARY_POSITIVE UNARY_NOT UNARY_INVERT TO_BOOL JUMP_FORWARD JUMP_BACKWARD
JUMP_BACKWARD_NO_INTERRUPT JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE
POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE
POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE GET_ITER FOR_ITER END_FOR GET_YIELD_FROM_ITER SEND
END_SEND YIELD_VALUE RETURN_GENERATOR CLEANUP_THROW GET_AWAITABLE GET_AITER GET_ANEXT END_ASYNC_FOR
ASYNC_GEN_WRAP BEFORE_WITH BEFORE_ASYNC_WITH WITH_EXCEPT_START PUSH_EXC_INFO POP_EXCEPT RERAISE
CHECK_EXC_MATCH CHECK_EG_MATCH PREP_RERAISE_STAR RAISE_VARARGS LOAD_ASSERTION_ERROR IMPORT_NAME IMPORT_FROM
""".split()  # noqa: SIM905
ASK = "import json, opcode, sys; print(json.dumps([sys.version_info[:2], opcode.opmap]))"


def main() -> None:
    rows, seen = [], set()
    for interpreter in sys.argv[1:]:
        (major, minor), numbers = json.loads(subprocess.run([interpreter, "-c", ASK], capture_output=True, check=True).stdout)
        allowed = sorted(
            number for name in ALLOWED if (number := numbers.get(name, 256)) < 256
        )  # beyond it are the compiler's own
        seen |= set(ALLOWED) & set(numbers)
        listed = ", ".join(map(str, allowed))
        case = f"#{'el' if rows else ''}if PY_VERSION_HEX >> 16 == 0x{major:02X}{minor:02X}"
        rows.append(f"{case}\nstatic const unsigned char ALLOWED[] = {{{listed}}};\n")
    if unknown := set(ALLOWED) - seen:
        raise SystemExit(f"no interpreter knows {', '.join(sorted(unknown))}")
    text = (
        "/* Made by tools/eval_opcodes.py; do not edit. */\n"
        + "".join(rows)
        + '#else\n#error "run tools/eval_opcodes.py for this Python"\n#endif\n'
    )
    (Path(__file__).resolve().parent.parent / "bindings" / "guard" / "eval_opcodes.inc").write_text(text)


if __name__ == "__main__":
    main()
