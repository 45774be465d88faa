"""Benchmarks and references: what is measured is there, and what is missing is said."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest
from support import MODELS

import vkrt
from vkrt.cli import bench
from vkrt.cli import main as cli
from vkrt.cli.reference import load_reference
from vkrt.method.arguments import TensorInfo

driver = pytest.mark.driver
MLP = str(MODELS / "mlp.pte")


@driver
def test_command(capsys):
    assert cli.main(["bench", MLP, str(MODELS / "toy.pte"), "--runs", "2"]) == 0
    out = capsys.readouterr().out
    assert "mlp.pte" in out and "toy.pte" in out and "GFLOP/s" in out
    assert cli.main(["bench", MLP, "--runs", "3", "--json"]) == 0
    result, = json.loads(capsys.readouterr().out)
    assert result["runs"] == 3 and result["flops"] > 0 and result["gflops_per_second"] > 0
    assert result["times"]["min"] <= result["times"]["median"]
    assert result["warm"]["seconds"] > 0 and result["first"]["seconds"] > 0
    assert (result["cold"] is None) == bool(result["cold_why"])


@driver
@pytest.mark.parametrize(("arguments", "words"), [
    ((MLP, "--runs", "0"), "0 runs"),
    ((MLP, "--method", "backward"), "no method 'backward'"),
    ((MLP, "--against", "numpy:a:b"), "expected torch:MODEL.pt2"),
    ((MLP, "--against", "torch:"), "expected torch:MODEL.pt2"),
    ((MLP, MLP, "--against", "torch:a:b"), "one model"),
])
def test_mistakes(capsys, arguments, words):
    assert cli.main(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1


def test_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(vkrt.PackageError, match="pip install torch"):
        load_reference("torch:somewhere:something")


class Tensor:
    """As much of PyTorch's as a reference needs."""

    def __init__(self, array):
        self.array = array

    def numpy(self):
        return self.array


class Module:
    training = True

    def eval(self):
        self.training = False

    def __call__(self, *inputs):
        assert not self.training
        return self.forward(*inputs)


class NoGrad:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


@pytest.fixture
def torch(monkeypatch):
    """Stands for PyTorch, which the tests do not need."""
    fake = types.ModuleType("torch")
    fake.Tensor, fake.from_numpy, fake.no_grad = Tensor, Tensor, NoGrad
    fake.nn = types.SimpleNamespace(Module=Module)
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.nn", fake.nn)
    return fake


SOURCE = """
import torch

class Double(torch.nn.Module):
    def forward(self, x):
        return torch.Tensor(2 * x.numpy()), torch.Tensor(x.numpy())

def double():
    return Double()

double_itself = Double()
number = 3
"""


def test_a_function_of_a_file(torch, tmp_path):
    file = tmp_path / "nets.py"
    file.write_text(SOURCE, encoding="utf-8")
    for name in ("double", "double_itself"):
        run = load_reference(f"torch:{file}:{name}")
        outputs = run(np.arange(3.0))
        np.testing.assert_array_equal(outputs[0], [0, 2, 4])
        assert len(outputs) == 2
    (tmp_path / "broken.py").write_text("1 / 0", encoding="utf-8")
    for text, words in ((f"torch:{tmp_path}/broken.py:x", "ZeroDivisionError"),
                        (f"torch:{file}:triple", "triple"), (f"torch:{file}:number", "int"),
                        (f"torch:{tmp_path}/none.py:double", "no such file"),
                        (f"torch:{tmp_path}/none.pt2", "no such file"),
                        ("torch:no_such_module_of_anybody:x", "no_such_module_of_anybody"),
                        ("torch:double", "expected torch:")):
        with pytest.raises(vkrt.InputError, match=words):
            load_reference(text)


@driver
def test_against(torch, tmp_path, capsys):
    """The reference here is the program itself, so the error is 0."""
    file = tmp_path / "nets.py"
    file.write_text(f"""
import torch
import vkrt

class Same(torch.nn.Module):
    def forward(self, x):
        with vkrt.load({MLP!r}) as program:
            return [torch.Tensor(y) for y in program.run(x.numpy())]
""", encoding="utf-8")
    assert cli.main(["bench", MLP, "--runs", "1", "--json", "--against",
                     f"torch:{file}:Same"]) == 0
    result, = json.loads(capsys.readouterr().out)
    assert result["error"] == 0 and result["reference"]["median"] > 0
    assert cli.main(["bench", MLP, "--runs", "1", "--against", f"torch:{file}:Same"]) == 0
    assert "times the time of the reference" in capsys.readouterr().out


def test_distance():
    assert bench.distance([np.ones(4)], [np.ones(4)]) == 0
    assert bench.distance([np.ones(4), np.zeros(1)], [2 * np.ones(4), np.zeros(1)]) == 0.5
    with pytest.raises(vkrt.InputError, match=r"\[\[3\]\], the program's \[\[4\]\]"):
        bench.distance([np.ones(4)], [np.ones(3)])


def test_why_a_file_cannot_leave_the_cache(tmp_path, monkeypatch):
    """Whether it can depends on the file system; the answer says which it was."""
    file = tmp_path / "file"
    file.write_bytes(bytes(100_000))
    monkeypatch.setattr(bench, "_PAUSE", 0)
    source = bench.Source.open(file)
    try:
        memoryview(source).tobytes()
        why = bench.drop_from_cache(str(file))
        assert not why or "cache" in why
        if not why:
            assert not any(source.resident(0, source.nbytes))
    finally:
        source.close()


def test_sample_inputs():
    info = TensorInfo("", (2, 3), "float32")
    index = TensorInfo("", (4,), "int64")
    one, two = bench.sample_inputs(types.SimpleNamespace(inputs=(info, index)))
    assert one.shape == (2, 3) and one.dtype == np.float32 and np.abs(one).max() <= 1
    np.testing.assert_array_equal(two, np.zeros(4, np.int64))
