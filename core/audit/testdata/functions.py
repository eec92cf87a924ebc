"""Print every function of this interpreter's C modules, and every method of their types: one name a line, as
`module.function` or `module.Type.method`. Types that no module shows count as well; those of `builtins` are there
whichever name leads to them (code, frame, function ...)."""

import importlib
import os
import sys
import sysconfig
import types

DESCRIPTORS = types.MethodDescriptorType | types.ClassMethodDescriptorType | types.BuiltinFunctionType

folder = os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload")
names = set(sys.builtin_module_names)
if os.path.isdir(folder):
    names |= {entry.split(".")[0] for entry in os.listdir(folder) if entry.endswith(".so")}
# A system's Python may keep them elsewhere, or compile them in.
names |= {n for n in sys.stdlib_module_names if n.startswith("_") and n.count("_") < 3} - {"__main__"}

modules = {}
for name in sorted(names):
    try:
        module = importlib.import_module(name)
    except BaseException:  # what this build or machine lacks
        continue
    if isinstance(getattr(module, "__spec__", None), object) and not getattr(module, "__file__", "").endswith(".py"):
        loader = type(getattr(module, "__loader__", None)).__name__
        if getattr(module, "__loader__", None).__class__ is type:
            loader = module.__loader__.__name__
        if loader != "FrozenImporter":
            modules[name] = module

for name, module in modules.items():
    for attribute, value in vars(module).items():
        if isinstance(value, types.BuiltinFunctionType) and not attribute.startswith("__"):
            print(f"{name}.{attribute}")


def below(cls, seen):
    for sub in type.__subclasses__(cls):
        if sub not in seen:
            seen.add(sub)
            below(sub, seen)
    return seen


found = below(object, {object})
for module in modules.values():
    found.update(v for v in vars(module).values() if isinstance(v, type))
# What Python calls a module is what the C code says, which may be the public name.
homes = set(modules) | {n.lstrip("_") for n in modules} | {"types", "os", "ssl", "sqlite3", "socket", "functools", "re"}
lines = set()
for cls in found:
    home = cls.__module__ if isinstance(cls.__module__, str) else "builtins"
    if home not in homes:
        continue
    for attribute, value in vars(cls).items():
        dunder = attribute.startswith("__") and attribute not in ("__setstate__",)
        if isinstance(value, DESCRIPTORS) and not dunder:
            lines.add(f"{home}.{cls.__name__}.{attribute}")
print("\n".join(sorted(lines)))
