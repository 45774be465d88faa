"""JSON that is read without the standard library's package says what the package says."""

from __future__ import annotations

import json

import pytest
from support import run_python

from vkrt import jsontext

GOOD = ('{"a": [1, -2.5e3, null, true, "x\\u00e9"], "b": {}}', " \n[]\r\n\t", '"text"', "7",
        '{"a": 1, "a": 2}', "[NaN, -Infinity]", "[" * 100 + "]" * 100)
BAD = ("", "{", '{"a": 1} x', "[1,]", '["\n"]', "\ufeff{}", "\v[]", "nul", "[" * 100000)


@pytest.mark.parametrize("made", [str, str.encode])
@pytest.mark.parametrize("text", GOOD)
def test_what_it_says(text, made):
    assert repr(jsontext.loads(made(text))) == repr(json.loads(text))


@pytest.mark.parametrize("without", [False, True], ids=["module in C", "package"])
@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:9]))
def test_what_is_none(text, without, monkeypatch):
    """It is refused in the words of the package."""
    if without:
        monkeypatch.setattr(jsontext, "_scanner", lambda: None)
    with pytest.raises((ValueError, RecursionError)) as wanted:
        json.loads(text)
    with pytest.raises(type(wanted.value)) as error:
        jsontext.loads(text)
    assert str(error.value) == str(wanted.value)


def test_bytes_that_are_no_utf8():
    assert jsontext.loads('["é"]'.encode("utf-16")) == ["é"]
    with pytest.raises(ValueError):
        jsontext.loads(b'["\xff"]')


def test_an_interpreter_without_the_module():
    code = """
        import sys
        sys.modules["_json"] = None
        from vkrt.jsontext import loads
        print(loads("[1]"))
    """
    assert run_python(code).split() == ["[1]"]
