"""What repeats adds nothing: neither objects of the device nor host memory nor Python's own."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import footprint
import numpy as np
import pytest
from support import MODELS, python, run_python

import vkrt
from vkrt.vk import live_objects

pytestmark = pytest.mark.driver
RUNS = 200


def held(program) -> tuple:
    """Everything vkrt counts."""
    gc.collect()
    return live_objects(), program.load_method("forward")._loaded.allocator.statistics()


@pytest.mark.parametrize("options", [
    {}, {"weights": "copy"}, {"weights": "stream"}, {"storage": "texture3d"}],
    ids=lambda options: "-".join(options.values()) or "default")
@pytest.mark.parametrize("name", ["toy", "mlp", "lstm_cell", "buffers"])
def test_runs_add_nothing(name, options, load):
    """200 runs: the same descriptor pools, buffers, .. (all objects), and no Python object each."""
    program = load(name, **options)
    inputs = [np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs]
    # Python keeps some freed objects for later: until then it does.
    for _ in range(RUNS):
        program.run(*inputs)
        program.reset_state()
    before, blocks = held(program), sys.getallocatedblocks()
    for _ in range(RUNS):
        program.run(*inputs)
        program.reset_state()
    assert held(program) == before
    assert sys.getallocatedblocks() - blocks < RUNS


@pytest.mark.parametrize("name", ["conv_mix", "buffers", "coder"])
def test_loads_add_nothing(name, device):
    def load():
        with vkrt.load(MODELS / f"{name}.pte", device) as program:
            for method in program.method_names:
                program.load_method(method)
        gc.collect()
        return live_objects()

    first = load()
    assert all(load() == first for _ in range(5))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_footprint_does_not_grow():
    done = python(footprint.__file__, "--growth", "--variants", "map", MODELS / "toy.pte")
    assert "for each of 300 inferences" in done.stdout
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_footprint_sees_growth(monkeypatch, capsys):
    """A run that keeps 4 kB is measured as one, and called too much."""
    # In a process of its own, as the tool does it: what other tests left moves in this one.
    each = float(run_python("""
        import sys
        import numpy as np
        import vkrt

        sys.path.insert(0, sys.argv[2])
        import footprint

        kept = []
        run = vkrt.Program.run

        def leaking(self, *inputs, **options):
            kept.append(np.ones(4096, np.uint8))
            return run(self, *inputs, **options)

        vkrt.Program.run = leaking
        print(footprint.growth(sys.argv[1], "map"))
        """, MODELS / "toy.pte", Path(footprint.__file__).parent))
    assert 3000 < each < 6000
    monkeypatch.setattr(footprint.fresh, "measure", lambda function, *arguments: each)
    assert footprint._check_growth(["toy.pte"], ["map"]) == 1
    assert "expected less than" in capsys.readouterr().out
