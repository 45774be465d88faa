"""`vkrt pack`: what it says, writes and refuses."""

from __future__ import annotations

import json
import os

import pytest
from packed_samples import copied
from support import MODELS

import vkrt
from vkrt import packer
from vkrt.cli import main as cli
from vkrt.description import Description
from vkrt.files import packed_beside


@pytest.mark.driver
def test_command(model, capsys, tmp_path):
    beside = packed_beside(str(model))
    assert cli.main(["pack", str(model), "--check"]) == 1
    assert "no such file" in capsys.readouterr().err
    assert cli.main(["pack", str(model)]) == 0
    assert f"wrote {beside}: " in capsys.readouterr().out
    assert cli.main(["pack", str(model), "--check"]) == 0
    assert "every byte" in capsys.readouterr().out
    other = tmp_path / "other"
    assert cli.main(["pack", str(model), "--output", str(other), "--storage", "buffer",
                     "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["output"] == str(other) and data["storage"] == "buffer"
    assert data["weights"] > 0 and data["file_bytes"] == other.stat().st_size > data["bytes"]
    assert cli.main(["run", str(model), "--packed", str(other), "--memory"]) == 0
    assert f"{data['weights']} weights are read from {other}" in capsys.readouterr().out
    assert not any(name.endswith(".tmp") for name in os.listdir(tmp_path))


@pytest.mark.driver
def test_nothing_to_pack(capsys, tmp_path):
    model = copied("pools", tmp_path)
    assert cli.main(["pack", str(model)]) == 0
    assert "nothing to pack" in capsys.readouterr().out
    assert cli.main(["pack", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] is None
    assert os.listdir(tmp_path) == [model.name]


@pytest.mark.driver
def test_users_files_are_not_written_over(model, capsys, tmp_path):
    """Packed weights take the place of packed weights, and of an empty file."""
    path = tmp_path / "keep.jpg"
    command = ["pack", str(model), "--output", str(path), "--storage", "texture3d"]
    path.write_bytes(b"a photo")
    assert cli.main(command) == 2
    assert "keep.jpg: a file is there that is not one of packed weights" in capsys.readouterr().err
    assert path.read_bytes() == b"a photo"
    path.write_bytes(b"")
    assert cli.main(command) == cli.main(command) == 0
    assert path.read_bytes().startswith(b"vkrtpack")


@pytest.mark.driver
@pytest.mark.parametrize("arguments, code, words", [
    (["no-such-file.pte"], 1, "No such file"), ([str(MODELS / "mlp.npz")], 1, ""),
    (["{model}", "--output", "{model}"], 2, "is the program itself"),
    (["{model}", "--output", "{folder}/no/such/folder"], 1, "No such file"),
    (["{model}", "--device", "no such device"], 2, "no such device"),
])
def test_mistakes(model, capsys, arguments, code, words):
    arguments = [a.format(model=model, folder=model.parent) for a in arguments]
    before = model.read_bytes()
    assert cli.main(["pack", *arguments]) == code
    error = capsys.readouterr().err
    assert error.startswith("vkrt: ") and error.count("\n") == 1 and words in error
    assert os.listdir(model.parent) == [model.name] and model.read_bytes() == before


@pytest.mark.driver
def test_methods_that_cannot_run_are_left_out(model, device, monkeypatch, capsys):
    """As long as one is left; a file is good for the methods that were packed."""
    alone = vkrt.pack(model, device=device)
    missing = {"backward"}

    def lowered(graph, target, lower=packer.lower):
        if graph in missing:
            raise vkrt.UnsupportedError(f"{graph} asks too much")
        return lower(original, target)

    description = Description(model)
    original = description.graph("forward")
    description.close()
    monkeypatch.setattr(Description, "method_names", ("forward", "backward"))
    monkeypatch.setattr(Description, "graph", lambda self, name: name)
    monkeypatch.setattr(packer, "lower", lowered)
    done = vkrt.pack(model, device=device)
    assert done.skipped == {"backward": "backward asks too much"}
    assert (done.weights, done.nbytes) == (alone.weights, alone.nbytes)
    assert cli.main(["pack", str(model)]) == 0
    assert "method backward is left out: backward asks too much" in capsys.readouterr().out
    missing.add("forward")
    assert cli.main(["pack", str(model)]) == 3
    assert "forward asks too much; backward" in capsys.readouterr().err.replace("backward: ", "")


def test_option_of_the_wrong_type():
    with pytest.raises(vkrt.InputError, match="packed=1: expected 'auto', 'off' or a path"):
        vkrt.plan.options.LoadOptions(packed=1)
