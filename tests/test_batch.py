"""tools/hosts/batch.py: many files, with and without Ray."""

import json
from pathlib import Path

import numpy as np
import pytest
from support import MODELS, python

import vkrt

BATCH = Path(__file__).parent.parent / "tools" / "hosts" / "batch.py"
MODEL = MODELS / "superres_small.pte"
pytestmark = pytest.mark.driver


def batch(*words, code=0):
    done = python(BATCH, *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def files(tmp_path, device):
    """A folder of inputs, one of them damaged, and what the others come to."""
    folder = tmp_path / "files"
    folder.mkdir()
    expected = {}
    with vkrt.load(MODEL, device) as program:
        for number in range(4):
            x = np.random.default_rng(number).uniform(size=(1, 3, 18, 22)).astype(np.float32)
            np.save(folder / f"{number}.npy", x)
            expected[f"{number}.npy"], = program.run(x)
    (folder / "damaged.npy").write_bytes(b"nothing")
    (folder / "other.txt").write_text("not a picture")
    return folder, expected


@pytest.mark.parametrize("actors", [0, 2])
def test_results_failures_and_going_on(actors, files, tmp_path):
    if actors:
        pytest.importorskip("ray")
    folder, expected = files
    out = tmp_path / "results"
    said = batch(MODEL, folder, "--out", out, "--actors", actors, code=1)
    assert said.startswith("5 files, 0 done before") and "5 of 5, 1 failed" in said
    for name, wanted in expected.items():
        with np.load(out / f"{name}.npz") as archive:
            assert np.array_equal(archive["out0"], wanted)
    failure, = map(json.loads, (out / "failures.jsonl").read_text().splitlines())
    assert failure["file"].endswith("damaged.npy") and failure["error"]
    assert {path.suffix for path in out.iterdir()} == {".npz", ".jsonl"}
    # Interrupted, it goes on with what is left; here what made one fail has been fixed.
    np.save(folder / "damaged.npy", np.zeros((1, 3, 18, 22), np.float32))
    said = batch(MODEL, folder, "--out", out, "--actors", actors)
    assert said.startswith("5 files, 4 done before") and "1 of 1, 0 failed" in said


def test_pictures_of_a_list(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (22, 18), (0, 51, 255)).save(tmp_path / "one.png")
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'one.png'}\n")
    batch(MODEL, tmp_path / "list.txt", "--out", tmp_path, "--actors", 0)
    x = np.empty((1, 3, 18, 22), np.float32)
    x[:] = np.array([0, 0.2, 1]).reshape(1, 3, 1, 1)
    with vkrt.load(MODEL) as program, np.load(tmp_path / "one.png.npz") as archive:
        np.testing.assert_allclose(archive["out0"], program.run(x)[0], atol=1e-5)
