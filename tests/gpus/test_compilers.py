"""What compilers of GPUs make of the kernels does not become worse.

`baseline.json` has for a device of each class how many pipelines small and real networks take,
which of them spill registers, the worst occupancy and the instructions.
tools/measure/gpu_cost.py measures, and says how to read it;

    python tools/measure/gpu_cost.py --update tests/gpus/baseline.json

writes it anew. What compiling takes is in there to be read, and never compared.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from compilers.baseline import text_of, worse
from compilers.drivers import capture, device_names
from compilers.statistics import pipeline_of, summary_of
from dealing import DEPTH
from gpu_drivers import FOLDER, MISSING, TURN
from support import need_model

FILE = Path(__file__).with_name("baseline.json")
BASELINE = json.loads(FILE.read_text(encoding="utf-8"))
NETWORKS = [(device, model) for device, models in BASELINE.items() for model in models]


def in_turn() -> list[tuple[str, str]]:
    """All of them; in a quick run one network of each device."""
    if DEPTH != "quick":
        return NETWORKS
    return [(device, list(models)[TURN % len(models)]) for device, models in BASELINE.items()]


@pytest.mark.dealt
@pytest.mark.skipif(not FOLDER, reason=MISSING)
@pytest.mark.parametrize(("device", "model"), in_turn(),
                         ids=[f"{device}-{model}" for device, model in in_turn()])
def test_nothing_becomes_worse(device, model):
    if device not in device_names():
        pytest.skip(f"VKRT_GPU_DRIVERS has no {device}")
    old, new = BASELINE[device][model], summary_of(capture(device, str(need_model(model)), []))
    if new["driver"] != old["driver"] and not new["error"]:
        pytest.skip(f"{device}: the baseline is of {old['driver']}, this is {new['driver']}")
    assert not list(worse(old, new))


# Without a driver

def test_a_line_for_each_program():
    assert text_of(BASELINE) == FILE.read_text(encoding="utf-8")


OLD = {"driver": "Mesa 1.0", "error": "", "pipelines": 3, "failed": [], "spilling": {"a": 5},
       "occupancy": 4, "instructions": 1000, "compile_cpu_ms": 7}


@pytest.mark.parametrize(("changes", "words"), [
    ({}, []),
    ({"compile_cpu_ms": 7000, "instructions": 1010, "occupancy": 8, "spilling": {}}, []),
    ({"spilling": {"a": 5, "b": 1}}, ["b spills 1, 0 before"]),
    ({"spilling": {"a": 6}}, ["a spills 6, 5 before"]),
    ({"failed": ["c"]}, ["c does not compile"]),
    ({"occupancy": 2}, ["the worst occupancy is 2, 4 before"]),
    ({"pipelines": 4, "instructions": 1100},
     ["4 pipelines, 3 before", "1100 instructions, 1000 before"]),
    ({"error": "exit 1", "pipelines": 0}, ["it does not load: exit 1"])])
def test_what_is_worse_is_named(changes, words):
    new = {**copy.deepcopy(OLD), **changes}
    assert list(worse(OLD, new)) == words


def test_figures_of_a_pipeline():
    """In each vendor's words; the widest of Intel's, what Mali's compiler prints, what failed."""
    line = {"module": "0", "nbytes": 4, "result": 0, "cpu_ms": 1.5, "constants": [], "said": ""}
    for executables, said, figures in (
            ([{"subgroup": 8, "Spill Count": 3, "Instruction Count": 70},
              {"subgroup": 16, "Spill Count": 1, "Instruction Count": 90}], "", (1, 16, 90)),
            ([{"subgroup": 64, "Spilled VGPRs": 2, "Subgroups per SIMD": 6, "Instructions": 5}], "",
             (2, 6, 5)),
            ([{"subgroup": 8, "Code Size": 128}],
             "COMPUTE shader: 62 inst, 2.0 cycles, 1 threads, 0 loops, 3:8 spills:fills",
             (3, 1, 62)),
            ([], "", (0, 0, 0))):
        found = pipeline_of({**line, "executables": executables, "said": said})
        assert (found.spills, found.occupancy, found.instructions) == figures
