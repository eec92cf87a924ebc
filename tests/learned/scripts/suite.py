import json
import os
from pathlib import Path

import pytest


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"a": 1}))
    return path


def test_reads(notes):
    assert json.loads(notes.read_text()) == {"a": 1}


@pytest.mark.parametrize("city", ["Graz", "Linz"])
def test_data(city):
    assert city in Path("data/sales.csv").read_text()


def test_environment(monkeypatch):
    monkeypatch.setenv("GREETING", "hi")
    assert os.environ["GREETING"] == "hi"


def test_refuses():
    with pytest.raises(KeyError):
        {}["no"]
