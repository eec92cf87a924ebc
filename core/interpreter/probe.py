"""Asked once, outside the sandbox, under -I -S: what does a normal start of this interpreter need?

Runs no code but the standard library's. Of site it takes the folders only: a `.pth` line that executes is skipped, and the
mapping of a setuptools editable install is read as data.
"""

import os
import sys

out = os.dup(1)  # what an import prints (readline does) must not reach the answer
os.dup2(2, 1)

import ast
import importlib.machinery
import importlib.util
import json
import site

stdlib_path = [p for p in sys.path if p]

# 1. The shared libraries that the standard library's extensions map.
for folder in stdlib_path:
    if os.path.basename(folder) != "lib-dynload" or not os.path.isdir(folder):
        continue
    for entry in sorted(os.listdir(folder)):
        name = entry.split(".")[0]
        if name.startswith(("_test", "_xx", "xx", "_tkinter", "_ctypes_test")):
            continue
        try:
            __import__(name)
        except Exception:
            pass
libs = set()
unlisted = ""
try:
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            path = os.fsdecode(line.rstrip(b"\n")).split(maxsplit=5)[5:]
            if path and path[0].startswith("/") and ".so" in path[0] and not path[0].endswith(" (deleted)"):
                libs.add(path[0])
except OSError as exc:
    unlisted = str(exc)

# 2. sys.path as a normal start has it, without running anything.
pth_files, pth_folders, pth_code = [], [], []


def code_in(folder):
    """What of a folder that a `.pth` line names can be imported: its packages and modules. The folder itself is often a
    whole project, with its secrets and data, and stays closed."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    suffixes = tuple(importlib.machinery.all_suffixes())
    for entry in entries:
        if entry.is_dir():
            if os.path.exists(os.path.join(entry.path, "__init__.py")):
                pth_code.append(entry.path)
        elif entry.name.endswith(suffixes):
            pth_code.append(entry.path)


def add(folder, known):
    if os.path.isdir(folder):
        real = os.path.normcase(os.path.abspath(folder))
        if real not in known:
            known.add(real)
            sys.path.append(real)
            pth_folders.append(real)
            code_in(real)


def editable(folder, name):
    """The folders that a setuptools editable finder serves: MAPPING and NAMESPACES, read as literals."""
    try:
        with open(os.path.join(folder, name + ".py"), encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        else:
            continue
        if getattr(target, "id", "") not in ("MAPPING", "NAMESPACES") or value is None:
            continue
        try:
            mapping = ast.literal_eval(value)
        except ValueError:
            continue
        for places in mapping.values():
            for place in [places] if isinstance(places, str) else places:
                pth_code.append(place if os.path.exists(place) else place + ".py")


def addpackage(folder, name, known):
    path = os.path.join(folder, name)
    pth_files.append(path)
    try:
        with open(path, "rb") as source:
            lines = source.read().decode("utf-8-sig", "surrogateescape").splitlines()
    except OSError:
        return known
    for line in lines:
        line = line.rstrip()
        if not line or line.startswith("#"):
            continue
        if line.startswith(("import ", "import\t")):
            word = line.split(";")[0].split()[1]
            if word.startswith("__editable__"):
                editable(folder, word)
            continue
        add(os.path.join(folder, line), known)
    return known


site.addpackage = addpackage
site.ENABLE_USER_SITE = os.getuid() == os.geteuid() and os.getgid() == os.getegid()
known = site.removeduppaths()
known = site.venv(known)
before = list(sys.path)
known = site.addusersitepackages(known)
user_site = [p for p in sys.path if p not in before]
known = site.addsitepackages(known)
site_folders = [p for p in sys.path if p not in stdlib_path and p not in pth_folders]

# 3. What lies elsewhere.
try:
    import ssl

    verify = ssl.get_default_verify_paths()
    ca = [p for p in (verify.cafile, verify.capath, verify.openssl_cafile, verify.openssl_capath) if p]
except Exception:
    ca = []
try:
    import zoneinfo

    tzpath = list(zoneinfo.TZPATH)
except Exception:
    tzpath = []


def find_package(name):
    spec = importlib.machinery.PathFinder.find_spec(name, sys.path)
    if spec is None or not spec.submodule_search_locations or not spec.origin:
        return ""
    return os.path.abspath(os.path.dirname(spec.origin))


def compile_package(folder):
    """A sandboxed interpreter may not write beside the package: without this each start of one would compile it anew where
    an installer (uv) did not."""
    import py_compile

    if not folder or os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not name.endswith(".py"):
            continue
        compiled = importlib.util.cache_from_source(path)
        try:
            if not os.path.exists(compiled) or os.stat(compiled).st_mtime < os.stat(path).st_mtime:
                py_compile.compile(path, quiet=2)
        except OSError:
            return  # not ours to write to


package = find_package("pysandboxes")
compile_package(package)
watch = site.getsitepackages() + [site.getusersitepackages()]

answer = {
    "executable": sys.executable,
    "base_executable": getattr(sys, "_base_executable", "") or "",
    "version": "%d.%d" % sys.version_info[:2],
    "full_version": sys.version.split()[0],
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    "path": [p for p in sys.path if p],
    "stdlib": stdlib_path,
    "site": site_folders,
    "user_site": user_site,
    "watch": watch + pth_files + pth_folders,
    "pth_code": pth_code,
    "ext_suffix": importlib.machinery.EXTENSION_SUFFIXES[0],
    "suffixes": importlib.machinery.all_suffixes(),
    "ca": ca,
    "tzpath": tzpath,
    "unlisted": unlisted,
    "libs": sorted(libs),
    "package": package,
}
with open(out, "wb") as stream:
    stream.write(json.dumps(answer).encode("ascii"))
