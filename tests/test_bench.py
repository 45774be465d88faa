"""Benchmarks: what is measured is there, and what is missing is said."""

import types
from contextlib import closing

import numpy as np
import pytest
from support import MODELS

from vkrt.cli import bench
from vkrt.method.arguments import TensorInfo

MLP = MODELS / "mlp.pte"


@pytest.mark.driver
def test_command(output_of, json_of):
    out = output_of("bench", MLP, MODELS / "toy.pte", "--runs", "2")
    assert "mlp.pte" in out and "toy.pte" in out and "GFLOP/s" in out
    result, = json_of("bench", MLP, "--runs", "3")
    assert result["runs"] == 3 and result["flops"] > 0 and result["gflops_per_second"] > 0
    assert result["times"]["min"] <= result["times"]["median"]
    assert result["warm"]["seconds"] > 0 and result["first"]["seconds"] > 0
    assert (result["cold"] is None) == bool(result["cold_why"])


@pytest.mark.driver
@pytest.mark.parametrize(("arguments", "words"), [
    (("--runs", "0"), "0 runs"), (("--method", "backward"), "no method 'backward'")])
def test_mistakes(error_of, arguments, words):
    err = error_of(2, "bench", MLP, *arguments)
    assert words in err and err.count("\n") == 1


def test_why_a_file_cannot_leave_the_cache(tmp_path, monkeypatch):
    """Whether it can depends on the file system; the answer says which it was."""
    file = tmp_path / "file"
    file.write_bytes(bytes(100_000))
    monkeypatch.setattr(bench, "_PAUSE", 0)
    with closing(bench.Source.open(file)) as source:
        memoryview(source).tobytes()
        why = bench.drop_from_cache(str(file))
        if why:
            assert "cache" in why
        else:
            assert not any(source.resident(0, source.nbytes))


def test_sample_inputs():
    info = TensorInfo("", (2, 3), "float32")
    index = TensorInfo("", (4,), "int64")
    one, two = bench.sample_inputs(types.SimpleNamespace(inputs=(info, index)))
    assert one.shape == (2, 3) and one.dtype == np.float32 and np.abs(one).max() <= 1
    np.testing.assert_array_equal(two, np.zeros(4, np.int64))
