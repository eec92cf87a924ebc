"""The border between Go and Python: every way in which gopy's own output breaks, and what a Go runtime changes in a process.

The tests run against a build of `_core` with the functions of bindings/control/fault_psbtest.go in it. Each case runs in an
interpreter of its own, since the wrong outcome of most of them is a crash.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from binding import BINDING, Run, extension, python, regenerate  # noqa: F401  (two are fixtures)

# --- what is generated ---


def test_the_checked_in_binding_is_what_a_fresh_run_gives(tmp_path: Path) -> None:
    done = regenerate("", tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("gopy.go", "gopy_wrappers.h"):
        assert (tmp_path / name).read_text() == (BINDING / name).read_text(), f"{name}: run python bindings/core/regen.py"


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ("psbtest_list", "control_FaultList takes or gives a slice"),
        ("psbtest_skip", "gopy left out control_FaultSkip"),
        ("psbtest_void", "control_FaultVoid has no result"),
    ],
)
def test_a_signature_that_would_break_stops_the_generator(tags: str, wanted: str, tmp_path: Path) -> None:
    done = regenerate(tags, tmp_path / "out")
    assert done.returncode != 0
    assert wanted in done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_generated_calls_python_from_go_or_defines_bool() -> None:
    go = (BINDING / "gopy.go").read_text()
    wrappers = (BINDING / "gopy_wrappers.h").read_text()
    assert not re.search(r"C\.Py|Python\.h|#cgo|Slice_|Map_", go)
    assert "typedef" not in go + wrappers
    for name, body in re.findall(r"^_wrap__core_(\w+)\(.*?\n\{\n(.*?)^\}", wrappers, re.MULTILINE | re.DOTALL):
        assert f'_GUARD("{name}");' in body
        assert body.count("Py_BEGIN_ALLOW_THREADS") == body.count("psb_raise(psb_fail)") == 1, name


def test_exports_are_those_of_the_table(python: Run) -> None:  # noqa: F811
    code = """
        names = {n for n in dir(core) if not n.startswith("__")}
        print(json.dumps(sorted(n for n in names if not n.startswith("control_"))))
        assert all(callable(getattr(core, n)) for n in names)
        import inspect
        for name in names:
            inspect.signature(getattr(core, name))
    """
    assert json.loads(python(code).stdout) == [
        "DecRef", "IncRef", "NumHandles", "call_begin", "call_cancel", "call_next", "loop_close", "loop_open", "loop_send",
        "loop_take",
    ]  # fmt: skip


# --- faults of gopy's wrappers ---


def test_a_panic_becomes_an_exception_and_gives_the_gil_back(python: Run) -> None:  # noqa: F811
    python("""
        sandbox = core.control_FaultOpen(False)
        for function, args, name in [
            (core.control_FaultPanic, (), "control.FaultPanic"),
            (core.control_FaultNil, (), "control.FaultNil"),
            (core.control_Sandbox_FaultPanic, (sandbox,), "control.Sandbox.FaultPanic"),
        ]:
            for _ in range(100):
                found = fault(function, *args)
            assert found["kind"] == "SandBoxError" and name in found["message"] and "panic" in found["message"], found
            assert "goroutine" in found["stack"]
        thread = threading.Thread(target=lambda: fault(core.control_FaultPanic))
        thread.start(); thread.join(10)
        assert not thread.is_alive()
    """)


def test_a_bad_handle_is_an_exception_in_every_shape_of_method(python: Run) -> None:  # noqa: F811
    python("""
        good = core.control_FaultOpen(False)
        assert core.control_Sandbox_FaultName(good) == "sandbox"
        assert core.control_Sandbox_FaultFail(good, False) is None
        for bad in (0, -1, good + 1000, 2**63 - 1):
            for function, args in [
                (core.control_Sandbox_FaultName, (bad,)),
                (core.control_Sandbox_FaultFail, (bad, False)),
                (core.control_Sandbox_FaultPanic, (bad,)),
                (core.call_begin, (bad, b"", [])), (core.call_next, (bad, 1)), (core.call_cancel, (bad, 1)),
                (core.loop_open, (bad,)), (core.loop_close, (bad, 1)), (core.loop_send, (bad, 1, b"", True, [])),
                (core.loop_take, (bad, 1, [])),
            ]:
                found = fault(function, *args)
                assert "closed or was never open" in found["message"], (function, found)
        for wrong in (2**63, "1", None, 1.5):
            try:
                core.control_Sandbox_FaultName(wrong)
            except (OverflowError, TypeError):
                continue
            raise AssertionError(wrong)
    """)


def test_handles_are_counted_and_freed(python: Run) -> None:  # noqa: F811
    python("""
        handle = core.control_FaultOpen(False)
        core.IncRef(handle)
        assert core.NumHandles() == 1
        core.DecRef(handle)
        assert core.control_Sandbox_FaultName(handle) == "sandbox"
        core.DecRef(handle)
        assert core.NumHandles() == 0
        assert "closed" in fault(core.control_Sandbox_FaultName, handle)["message"]
        assert core.DecRef(handle) is None
        assert "not opened" in fault(core.control_FaultOpen, True)["message"]
        assert core.NumHandles() == 0
    """)


def test_errors_and_strings_do_not_leak(python: Run) -> None:  # noqa: F811
    python("""
        handle = core.control_FaultOpen(False)
        long = "x" * 10_000
        def rss():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def work(count):
            for _ in range(count):
                try: core.control_FaultFail(long)
                except RuntimeError: pass
                core.control_FaultFail("")
                try: core.control_Sandbox_FaultFail(handle, True)
                except RuntimeError: pass
                core.control_Sandbox_FaultFail(handle, False)
                core.control_FaultEcho(long)
        work(2000)
        before = rss()
        work(10_000)  # 200 MB pass; a leak of any of the strings would show
        assert rss() - before < 20e6, (before, rss())
    """)


def test_values_cross_as_they_are(python: Run) -> None:  # noqa: F811
    python(r"""
        assert core.control_FaultEcho("") == ""
        assert core.control_FaultEcho("ä😀\n") == "ä😀\n"
        assert core.control_FaultEcho(text="kw") == "kw"
        assert core.control_FaultNot(True) is False and core.control_FaultNot(0) is True
        assert core.control_FaultAdd(-2**63) == -2**63 + 1
        class Odd:
            def __bool__(self): raise ZeroDivisionError
        try: core.control_FaultNot(Odd())
        except ZeroDivisionError: pass
        else: raise AssertionError("an exception of __bool__ got lost")
        for wrong in ("a\0b", "/tmp/\udcff"):
            try: core.control_FaultEcho(wrong)
            except ValueError: continue
            raise AssertionError(wrong)
        try: core.control_FaultEcho(b"bytes")
        except TypeError: pass
        else: raise AssertionError("bytes passed for text")
    """)


def test_paths_that_are_not_utf8_cross_in_json_as_bytes(python: Run) -> None:  # noqa: F811
    python(r"""
        for path in (b"/tmp/\xff\xfe", b"/tmp/\xc3\xa4", b"/tmp/a\nb", "/tmp/😀".encode()):
            text = os.fsdecode(path)
            got = json.loads(core.control_FaultBytes(json.dumps({"path": text})))
            assert bytes.fromhex(got["hex"]) == path and got["path"] == text, (path, got)
        found = fault(core.control_FaultBytes, json.dumps({"path": "\ud800"}))
        assert "surrogate" in found["message"]
        found = fault(core.control_FaultBytes, "{")
        assert found["kind"] == "SandBoxError"
    """)


def test_a_long_operation_is_interruptible_and_its_outcome_arrives(python: Run) -> None:  # noqa: F811
    python("""
        import time
        sandbox = core.control_FaultOpen(False)
        assert core.control_Sandbox_FaultTask(sandbox, "well") == 7
        assert "the task failed" in fault(core.control_Sandbox_FaultTask, sandbox, "fail")["message"]
        assert "forced in a task" in fault(core.control_Sandbox_FaultTask, sandbox, "panic")["message"]
        began = time.monotonic()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try: core.control_Sandbox_FaultForever(sandbox)
        except KeyboardInterrupt: assert time.monotonic() - began < 0.5
        else: raise AssertionError("no KeyboardInterrupt")
    """)


# --- what a Go runtime changes in a process ---


def test_a_forked_copy_is_refused_by_every_function_and_never_hangs(python: Run) -> None:  # noqa: F811
    python("""
        handle = core.control_FaultOpen(False)
        functions = [getattr(core, n) for n in dir(core) if n[0].islower() or n[1].islower()]
        stop = False
        def busy():
            while not stop: core.control_FaultEcho("busy")
        thread = threading.Thread(target=busy); thread.start()
        import warnings; warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(200):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    for function in functions:
                        if function.__name__ in ("DecRef", "IncRef"):
                            assert function(handle) is None
                            continue
                        found = fault(function, *(1,) if function.__name__ == "loop_open" else ())
                        assert "after fork" in found["message"] and function.__name__ in found["message"], found
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        stop = True; thread.join()
        assert core.control_FaultEcho("parent") == "parent"
    """)


@pytest.mark.parametrize("before", ["SIG_IGN", "SIG_DFL", "handler"])
def test_sigpipe_keeps_its_disposition(python: Run, before: str) -> None:  # noqa: F811
    python(
        f"""
        def mask(name):
            line = next(line for line in open("/proc/self/status") if line.startswith(name))
            return int(line.split()[1], 16) >> (signal.SIGPIPE - 1) & 1
        if {before!r} == "handler":
            seen = []
            signal.signal(signal.SIGPIPE, lambda *args: seen.append(args))
        else:
            signal.signal(signal.SIGPIPE, signal.{before if before != "handler" else "SIG_IGN"})
        was = mask("SigIgn"), mask("SigCgt")
        load()
        assert (mask("SigIgn"), mask("SigCgt")) == was, was
        if {before!r} == "handler":
            os.kill(os.getpid(), signal.SIGPIPE)
            assert seen
        """,
        load=False,
    )


def test_a_closed_standard_output_is_an_error_and_not_the_end(python: Run) -> None:  # noqa: F811
    python("""
        read, write = os.pipe()
        os.close(read)
        os.dup2(write, 1)
        assert "broken pipe" in fault(core.control_FaultWrite)["message"]
    """)


@pytest.mark.parametrize("order", ["before", "after"])
def test_faulthandler_still_reports_a_crash(python: Run, order: str) -> None:  # noqa: F811
    first, second = ("faulthandler.enable()", "load()") if order == "before" else ("load()", "faulthandler.enable()")
    done = python(
        f"""
        import faulthandler
        {first}; {second}
        core.control_FaultEcho("x")
        faulthandler._sigsegv()
        """,
        load=False,
        status=-signal.SIGSEGV,
    )
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert 'File "<string>"' in done.stderr


def test_a_nil_pointer_in_go_is_an_exception_where_faulthandler_came_first(python: Run) -> None:  # noqa: F811
    python('assert "nil pointer" in fault(core.control_FaultNil)["message"]', "-X", "faulthandler")


def test_ctrl_c_and_sigterm_are_the_interpreters_own(python: Run) -> None:  # noqa: F811
    python("""
        core.control_FaultEcho("x")
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000): pass
        except KeyboardInterrupt: pass
        else: raise AssertionError("no KeyboardInterrupt")
    """)
    python("os.kill(os.getpid(), signal.SIGTERM)", status=-signal.SIGTERM)


def test_the_extension_does_not_link_the_interpreter(extension: Path) -> None:  # noqa: F811
    dynamic = subprocess.run(["readelf", "-d", extension], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in dynamic
    assert "libpython" not in dynamic


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.12 has the first interpreters with a GIL of their own")
def test_an_interpreter_with_its_own_gil_can_import_it(python: Run) -> None:  # noqa: F811
    python("""
        try: import _interpreters as interpreters
        except ImportError: import _xxsubinterpreters as interpreters
        import textwrap
        if sys.version_info < (3, 13):
            one, run = interpreters.create(isolated=True), interpreters.run_string
        else:
            one, run = interpreters.create("isolated"), interpreters.exec
        out = run(one, textwrap.dedent(f'''
            import importlib.util
            spec = importlib.util.spec_from_file_location("_core", {core.__file__!r})
            core = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(core)
            assert core.control_FaultEcho("sub") == "sub"
            try: core.control_FaultPanic()
            except RuntimeError as error: assert "forced" in str(error)
            else: raise AssertionError
        '''))
        assert out is None, out
        interpreters.destroy(one)
    """)
