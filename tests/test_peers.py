"""The comparison with other runtimes: its tables, what it refuses, and vkrt's own runner."""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
from pathlib import Path

import bench_peers
import numpy as np
import pytest
from bench_peers import Measurement
from peers import environments, report
from peers.environments import Unavailable
from support import MODELS, python

TOOL = Path(bench_peers.__file__)


def record(peer: str, model: str, run: float, cold: bool = False, **more: object) -> dict:
    return {"peer": peer, "model": model, "round": 1, "cold": cold, "error": 2e-6,
            "load_ms": 10.0, "load_cpu_ms": 8.0, "first_ms": 2 * run, "first_cpu_ms": run,
            "run_ms": [] if cold else [run, 3 * run, 2 * run],
            "run_cpu_ms": [] if cold else [run], "memory": 4_000_000, **more}


RESULT = {
    "models": ["net", "other"], "peers": ["vkrt", "ncnn", "torch"],
    "facts": {"date": "2026-01-01", "processor": "a processor", "threads": 2, "rounds": 3,
              "inferences": 3, "load": 0.1, "versions": {"vkrt": "1", "ncnn": "2"},
              "devices": {"a device": ["vkrt", "ncnn"]}},
    "records": [
        *(record("vkrt", "net", run, driver_memory=3_000_000) for run in (5.0, 1.0, 4.0)),
        *(record("ncnn", "net", run) for run in (16.0, 20.0, 1.0)),
        record("vkrt", "other", 10.0), record("ncnn", "other", 10.0, error=3e-5),
        record("torch", "other", 5.0, memory=None), record("vkrt", "net", 7.0, cold=True)],
    "failures": [{"peer": "torch", "model": "net", "why": "it stumbled"}],
}


def section(text: str, title: str) -> str:
    """The table under a title."""
    return text.split(f"**{title}**\n\n")[1].split("\n\n")[0]


def test_tables_have_medians_and_ratios(tmp_path):
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps(RESULT))
    done = python(TOOL, "--show", saved)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    clock, cpu, warm, cold, _, memory = (section(text, title) for title in report.FIGURES)
    # Of each process the median inference, of all rounds the median process.
    assert clock == ("| | vkrt | ncnn | torch |\n|---|---|---|---|\n"
                     "| net | 8.0 | 32.0 (4.00) | - |\n"
                     "| other | 20.0 | 20.0 (1.00) | 10.0 (0.50) |\n"
                     "| geometric mean of the ratios |  | (2.00) | (0.50) |")
    assert "| net | 4.0 | 16.0 (4.00) | - |" in cpu
    assert "| net | 18 | 42 (2.33) | - |" in warm
    assert "| | vkrt |" in cold and "| net | 24 |" in cold
    assert "| other | 4 | 4 (1.00) |" in memory and "torch" not in memory
    assert "ncnn 3e-05" in text and "vkrt 2e-06" in text and " 3 MB are the" in text
    assert "3 rounds of 3 inferences. Vulkan device: a device (vkrt, ncnn). " in text
    assert "* Not measured: torch, net: it stumbled" in text


def test_a_busy_machine_is_named():
    busy = {**RESULT, "facts": {**RESULT["facts"], "load": 7.25}}
    assert "busy machine (load average 7.2 at" in report.markdown(busy)


def test_what_cannot_be_measured_is_listed(monkeypatch, tmp_path):
    """A peer that cannot be installed or run costs its column, and the reason is kept."""
    options = argparse.Namespace(
        folder=tmp_path, threads=1, torch=None, executorch_vulkan=None, models=["resnet18"],
        peers=["vkrt", "ncnn", "executorch-vulkan"], rounds=2, inferences=1)

    def make(name, folder, base=None):
        if name != "torch":
            raise Unavailable("pip: no such package")
        return "python"

    def run(self, index, inferences, cold=False):
        if index == 2:
            raise Unavailable("run: ended by signal 6")
        return record(self.peer, self.model, 1.0, cold)

    monkeypatch.setattr(bench_peers.os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(environments, "make", make)
    monkeypatch.setattr(environments, "vkrt", lambda: "python")
    monkeypatch.setattr(bench_peers, "_make_model", lambda *_: {"shape": [1], "failures": {}})
    monkeypatch.setattr(Measurement, "run", run)
    result = bench_peers.compare(options)
    assert [(f["peer"], f["model"]) for f in result["failures"]] == [
        ("ncnn", ""), ("executorch-vulkan", ""), ("vkrt", "resnet18")]
    assert [r["cold"] for r in result["records"]] == [False, True]
    assert "no such package" in report.markdown(result)


def measurement(folder: Path, command: list[str], shape: tuple[int, ...] = ()) -> Measurement:
    """vkrt's run of the network "net", whose files are in a folder."""
    return Measurement("vkrt", "net", folder, command, {"shape": shape, "failures": {}},
                       argparse.Namespace(threads=1, inferences=2))


def files(folder: Path, inputs: np.ndarray, expected: np.ndarray) -> Path:
    """Writes the files of "net" and returns where they are."""
    place = folder / "models" / "net"
    place.mkdir(parents=True)
    inputs.tofile(place / "input.bin")
    expected.tofile(place / "expected.bin")
    return place


@pytest.mark.driver
@pytest.mark.parametrize("cold", [False, True])
def test_vkrt_is_measured(tmp_path, cold):
    arrays = np.load(MODELS / "mlp.npz")
    shutil.copy(MODELS / "mlp.pte", files(tmp_path, arrays["in0"], arrays["out0"]) / "vulkan.pte")
    found = measurement(tmp_path, [sys.executable, str(TOOL.parent / "peers" / "run_vkrt.py")],
                        arrays["in0"].shape).run(1, 3, cold)
    assert found["cold"] == cold and found["error"] < 1e-5
    assert len(found["run_ms"]) == len(found["run_cpu_ms"]) == 3
    assert found["load_ms"] > 0 and found["first_ms"] > 0 and found["device"]
    assert [path.name for path in tmp_path.iterdir() if path.name != "models"] \
        == ([] if cold else ["caches"])


# What a runner does in the place of vkrt's -> what is said of it
BAD = {
    "write([1, 2]); print('{}')": "relative L2 distance",
    "write([3]); print('{}')": "its result is wrong",
    "write([math.nan, 4]); print('{}')": "its result is wrong",
    "print('{}')": "its result is wrong",
    "write([3, 4])": "printed no figures",
    "write([3, 4]); print('done')": "printed no figures",
    "sys.exit('out of luck')": "out of luck",
    "os.kill(os.getpid(), 6)": "ended by signal 6",
}


@pytest.mark.parametrize("does", BAD)
def test_wrong_results_and_failures_are_not_figures(tmp_path, does):
    files(tmp_path, np.zeros(1, np.float32), np.array([3, 4], np.float32))
    code = f"""
import array, math, os, sys
def write(values):
    with open(sys.argv[3], "wb") as file:
        array.array("f", values).tofile(file)
print("some words before")
{does}
"""
    with pytest.raises(Unavailable, match=BAD[does]):
        measurement(tmp_path, [sys.executable, "-c", code]).run(1, 1)


def test_the_tool_knows_the_networks_that_can_be_made():
    """It cannot import them, because they need PyTorch."""
    tree = ast.parse((TOOL.parent / "peers" / "networks.py").read_text(encoding="utf-8"))
    made = next(node.value for node in tree.body if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", "") == "NETWORKS")
    assert [ast.literal_eval(key) for key in made.keys] == list(bench_peers.NETWORKS)
