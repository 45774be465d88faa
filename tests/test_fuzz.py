"""Damaged programs, changed where the format says something; tools/check/fuzz.py does many."""

import os
from collections import Counter
from dataclasses import replace
from random import Random

import fuzz
import pytest
from mutations import Model
from support import MODELS, QUICK, python

from vkrt.graph.states import PREPACK
from vkrt.ops import registry
from vkrt.ops.dtypes import ANY

NAMES = ["toy", "mlp", "shapes", "elementwise", "lstm_cell", "buffers", "coder"]
# Less on further drivers: little of this depends on them.
COUNT = 30 if QUICK else 150


@pytest.fixture(scope="module")
def models():
    return [Model.of(name, (MODELS / f"{name}.pte").read_bytes()) for name in NAMES]


def test_damaged_programs(models, device, tmp_path):
    """Each of them runs, is refused with a documented exception, or is too large to be run."""
    outcomes = Counter()
    for index in range(COUNT):
        _, data, done, rng = fuzz.damaged(models, 20, index)
        try:
            outcomes[fuzz.attempt(data, rng, device, tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"file {index}: {'; '.join(done)}") from error
    assert outcomes["ran"] and outcomes["FormatError"]


def test_a_reach_beyond_memory_is_a_finding(device, tmp_path, monkeypatch):
    """It is none of the exceptions that a program may be refused with."""
    data = bytearray((MODELS / "elementwise.pte").read_bytes())
    data[7950] = 0  # the dtype of a weight becomes bool
    assert fuzz.attempt(bytes(data), Random(1), device, tmp_path) == "FormatError"
    monkeypatch.setitem(registry._DECLARED, PREPACK,
                        replace(registry.operator(PREPACK), dtypes=ANY))
    with pytest.raises(AssertionError, match="cannot be a view"):
        fuzz.attempt(bytes(data), Random(1), device, tmp_path)


def test_the_same_seed_gives_the_same_files(models):
    first = [fuzz.damaged(models, 3, index)[:3] for index in range(20)]
    assert first == [fuzz.damaged(models, 3, index)[:3] for index in range(20)]
    assert len({data for _, data, _ in first}) == 20


def test_places_are_those_of_the_format(models):
    """Every kind of place is found, inside the file, and good programs are not changed by it."""
    for model in models:
        assert {site.kind for site in model.sites} == {"number", "item", "offset", "length", "text",
                                                       "slot"}
        names = {site.name for site in model.sites}
        assert {"VkTensor.dims", "OperatorCall.args", "OperatorCall.name", "Tensor.sizes"} <= names
        assert model.name in ("shapes", "toy") or {
            "DataSegment.offset", "VkBytes.named_key", "NamedData.segment_index"} <= names
        assert all(0 <= site.at < len(model.data) for site in model.sites)


@pytest.mark.driver
def test_command(tmp_path):
    """Workers, the table, and the exit code."""
    done = python(fuzz.__file__, MODELS / "mlp.pte", "--count", "6", "--jobs", "2",
                  "--out", tmp_path / "found")
    assert done.returncode == 0, done.stdout
    assert "6  files, 0 findings" in done.stdout and not (tmp_path / "found").exists()


@pytest.mark.driver
def test_findings_are_kept(tmp_path, monkeypatch, capsys):
    """A worker that dies, or says that something else came out: written down, with its file."""
    monkeypatch.setattr(fuzz, "_work", _broken)
    monkeypatch.setattr(fuzz.multiprocessing, "get_context",
                        lambda kind: fuzz.multiprocessing.context.ForkContext())
    code = fuzz.main([str(MODELS / "mlp.pte"), "--count", "3", "--jobs", "1",
                      "--out", str(tmp_path)])
    assert code == 1
    text = capsys.readouterr().out
    assert "ended with code -9" in text and "FINDING ValueError" in text
    assert "3  files, 2 findings" in text
    assert len(list(tmp_path.glob("mlp-1-*.pte"))) == len(list(tmp_path.glob("*.json"))) == 2


def _broken(pipe, paths, seed):
    while (index := pipe.recv()) is not None:
        if index == 0:
            os.kill(os.getpid(), 9)
        pipe.send((("ran", "FINDING ValueError")[index % 2], "ValueError: of no kind"))
