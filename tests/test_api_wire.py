"""The settings that the application gives its child."""

from __future__ import annotations

import pytest

from pysandboxes._wire import pack_settings, unpack_settings


def test_settings_come_back_in_their_order() -> None:
    told = [("path", "/a"), ("path", "/b=c"), ("argv", "-x"), ("main", ""), ("path", "/ä\udcff")]
    assert unpack_settings(pack_settings(told)) == {"path": ["/a", "/b=c", "/ä\udcff"], "argv": ["-x"], "main": [""]}


def test_a_setting_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match=r"NUL.*'argv'"):
        pack_settings([("argv", "a\0path=/evil")])


def test_nothing_is_no_setting() -> None:
    assert unpack_settings(b"") == {}
