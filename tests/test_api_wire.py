"""What crosses as plain bytes: the settings of a child, and log records as msgpack."""

from __future__ import annotations

import struct

import pytest

from pysandboxes._msgpack import unpack_map
from pysandboxes._wire import pack_settings, unpack_settings


def test_settings_come_back_in_their_order() -> None:
    told = [("path", "/a"), ("path", "/b=c"), ("argv", "-x"), ("main", ""), ("path", "/ä\udcff")]
    assert unpack_settings(pack_settings(told)) == {"path": ["/a", "/b=c", "/ä\udcff"], "argv": ["-x"], "main": [""]}


def test_a_setting_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match=r"NUL.*'argv'"):
        pack_settings([("argv", "a\0path=/evil")])


def test_nothing_is_no_setting() -> None:
    assert unpack_settings(b"") == {}


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"\x80", {}),
        (b"\x83\xa1a\x01\xa1b\xe0\xa1c\xc0", {"a": 1, "b": -32, "c": None}),
        (b"\x81\xa1a\xd9\x02\xc3\xa4", {"a": "ä"}),
        (b"\x81\xa1a\xc4\x02\xff\x00", {"a": b"\xff\x00"}),
        (b"\x81\xa1a\xa1\xff", {"a": "\\xff"}),
        (b"\x81\xa1a\xcb" + struct.pack(">d", 1.5), {"a": 1.5}),
        (b"\x82\xa1a\xcd\x01\x00\xa1b\xd3" + b"\xff" * 8, {"a": 256, "b": -1}),
        (b"\xde\x00\x01\xa1a\xc3", {"a": True}),
    ],
)
def test_a_flat_map_is_read(data: bytes, fields: dict[str, object]) -> None:
    assert unpack_map(data) == fields


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x81",
        b"\x81\xa1a",
        b"\x81\xa1a\x01\x00",  # something after the end
        b"\x81\x01\x01",  # a key that is no text
        b"\x81\xa1a\x90",  # a list
        b"\x81\xa1a\x80",  # a map in a map
        b"\x81\xa1a\xdb\xff\xff\xff\xff",  # a text of four gigabytes
        b"\x81\xa1a\xcb\x00",  # half a number
        b"\xde\xff\xff",  # too many fields
        b"\x93\x01\x02\x03",
        b"\xc1",
    ],
)
def test_anything_else_is_nothing(data: bytes) -> None:
    assert unpack_map(data) is None


def test_every_cut_of_a_map_is_nothing() -> None:
    whole = b"\x82\xa1a\xd9\x03abc\xa1b\xcf" + b"\x01" * 8
    assert unpack_map(whole) is not None
    assert [unpack_map(whole[:end]) for end in range(len(whole))] == [None] * len(whole)
