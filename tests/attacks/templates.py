"""Put text of one's own into the templates that the standard library generates code from."""

from __future__ import annotations

from functools import partial

from attack import Attack

template = partial(Attack, "template", kind="text")

CASES: list[Attack] = [
    template(
        "a field's name",
        """
        import dataclasses
        class C: a = 0
        C.__annotations__ = {"a or print('ESC' + 'APED') or self.a": int}
        dataclasses.dataclass(init=False, repr=False)(C)
        C() == C()
    """,
    ),
    template(
        "a field's name that walks",
        """
        import dataclasses
        class C:
            def __init__(self): pass
        C.__annotations__ = {"__init__.__globals__['got']('s3cret') or self.__class__": int}
        dataclasses.dataclass(init=False, repr=False)(C)
        C() == C()
    """,
    ),
    template(
        "a field that calls itself otherwise",
        """
        import dataclasses
        class F(dataclasses.Field):
            __slots__ = ()
            name = property(lambda self: "a or print('ESC' + 'APED') or self.a", lambda self, value: None)
        f = dataclasses.field()
        class C:
            a: int = F(*(getattr(f, n) for n in ('default', 'default_factory', 'init', 'repr', 'hash', 'compare', 'metadata', 'kw_only')))
        dataclasses.dataclass(init=False, repr=False, match_args=False)(C)
        c = C(); c.a = 0
        c == c.__class__.__new__(C)
        d = C(); d.a = 0
        c == d
    """,
    ),
    template(
        "a helper replaced",
        """
        import dataclasses
        dataclasses._tuple_str = lambda *a: "(print('ESC' + 'APED'),)"
        @dataclasses.dataclass(unsafe_hash=True)
        class C: a: int
        hash(C(1))
    """,
        alone=True,
    ),
    template(
        "namedtuple's names after the check",
        """
        import collections, types
        text = "x: _tuple_new(_cls, (x('ESC' + 'APED'),)) #"
        collections._sys = types.SimpleNamespace(intern=lambda s: text if s == 'x' else s)
        collections.namedtuple('P', 'x', module='m')(print)
    """,
        alone=True,
    ),
]
