"""What a load adds to its process: the parts add up, and what is needed no more is let go of."""

import gc
import json
import mmap
import os
import sys

import footprint
import numpy as np
import pytest
from support import MODELS, inputs_of, need_one_memory, run_python

import vkrt
from vkrt.lowering.reuse import Memo
from vkrt.report.process import ProcessGrowth, resident, resident_within

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def figures(nbytes):
    return {"VmRSS": nbytes}


def booked(steps, **attributes):
    """A book of steps with these bytes resident after each, beginning with 1000."""
    growth = ProcessGrowth(**attributes)
    growth.begin(figures(1000))
    for step, nbytes in steps:
        growth.attribute(step, figures(nbytes))
    return growth


LOAD = [("program", 1100), ("driver", 5100), ("program", 5300), ("pipelines", 6300),
        ("rest", 6310), ("weights", 6820), ("rest", 6815), ("rest", 6900)]


def test_steps_become_parts():
    growth = booked([*LOAD, ("run", 7800)], holds_device=True)
    found = growth.parts(weights=500, activations=300, streamed=0).as_dict()
    # 500 of the step of the weights are their bytes, 300 of the run those of the activations.
    assert found == {"driver": 4000, "program": 300, "pipelines": 1000 + 600, "weights": 500,
                     "mapped": 0, "activations": 300, "rest": 10 + 10 - 5 + 85, "freed": 0,
                     "total": 6800}


def test_memory_that_is_given_back_or_used_again_is_a_part():
    """100 are given back, and the 500 of the weights lie where 300 were resident."""
    found = booked([*LOAD[:5], ("weights", 6510), ("rest", 6530), ("freed", 6430), ("run", 7330)],
                   holds_device=True).parts(500, 300, 0)
    assert found.as_dict() == {"driver": 4000, "program": 300, "pipelines": 1000 + 600,
                               "weights": 500, "mapped": 0, "activations": 300, "rest": 0,
                               "freed": -100 - (500 - 200 - 10 - 20), "total": 6330}
    # A first run that touches nothing new: the pages of its activations were there.
    found = booked([*LOAD, ("run", 6900)], holds_device=True).parts(500, 1300, 0)
    assert (found.pipelines, found.freed) == (0, -300)


@linux
def test_a_load_that_gives_back_what_others_freed(device):
    """The parts add up, and none is less than nothing but the one that says so.

    Without validation, whose layer uses what was freed itself.
    """
    need_one_memory(device)  # drivers of GPUs use what was freed, too
    run_python("""
        import sys
        import numpy as np
        import vkrt
        # A driver that starts may use up what was freed.
        device = vkrt.Device.open()
        # Freed, they stay resident: what lies behind them keeps the system's allocator from giving
        # them back by itself.
        pieces = [bytes(4000) for _ in range(8000)]
        del pieces[:-1]
        with vkrt.load(sys.argv[1], device) as program:
            program.run(np.zeros((3, 30), np.float32))
            parts = program.memory.process.as_dict()
        total, freed = parts.pop("total"), parts.pop("freed")
        assert total == sum(parts.values()) + freed, parts
        assert min(parts.values()) >= 0, parts
        assert freed < -20_000_000, (freed, parts)
        """, str(MODELS / "mlp.pte"), VKRT_VALIDATION="0")


def test_streamed_weights_are_touched_by_the_run():
    found = booked([*LOAD, ("run", 7800)], holds_device=True).parts(500, 300, 200)
    assert (found.weights, found.pipelines, found.rest) == (700, 1400, 100)


def test_memory_of_a_device_of_its_own_is_not_in_the_process():
    found = booked([*LOAD, ("run", 7800)]).parts(500, 300, 200)
    assert (found.weights, found.activations, found.pipelines, found.rest) == (0, 0, 1900, 600)


def test_methods_add_up():
    found = booked([*LOAD, ("run", 7800), ("rest", 7800), ("program", 7850), ("pipelines", 7900),
                    ("run", 7950)]).parts(0, 0, 0)
    assert (found.program, found.pipelines, found.total) == (350, 2000, 6950)


@linux
def test_resident_pages_of_a_file(tmp_path):
    page = mmap.PAGESIZE
    path = tmp_path / "pages"
    path.write_bytes(bytes(8 * page))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        address = np.frombuffer(mapped, np.uint8).ctypes.data
        mapped.madvise(mmap.MADV_RANDOM)
        assert resident_within([(address, 8 * page)]) == 0
        assert mapped[5 * page] == 0
        assert page <= resident_within([(address, 8 * page)]) <= 8 * page
        assert resident_within([(address + page, 7 * page)]) == 0


@linux
@pytest.mark.driver
@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_the_parts_of_a_load(weights):
    path = MODELS / "conv_mix.pte"
    with vkrt.load(path, weights=weights) as program:
        memory = program.memory
        assert (memory.process.activations, memory.process.mapped) == (0, 0)
        program.run(*inputs_of(program))
        parts = memory.process.as_dict()
        total = parts.pop("total")
        assert total == sum(parts.values())
        assert all(nbytes >= 0 for name, nbytes in parts.items() if name != "freed")
        # Of a CPU driver, device memory is the process's.
        if program.device.info.type != "cpu":
            return
        assert parts["weights"] == memory.weights + memory.pool + memory.uploads + memory.state
        assert parts["activations"] == memory.activations
        assert parts["weights"] + parts["activations"] == memory.phases[-1].device
        if memory.mapped:
            assert memory.mapped <= parts["mapped"]
        assert parts["mapped"] <= os.path.getsize(path) + mmap.PAGESIZE
        assert f"activations  {parts['activations']:,}" in " ".join(
            memory.table().split("process ")[1].split()).replace(" ", "  ")
        assert json.loads(json.dumps(memory.as_dict()))["process"]["total"] == total


def test_an_open_device_is_not_the_programs(load):
    assert load("mlp").memory.process.driver == 0


@linux
@pytest.mark.driver
def test_footprint_has_the_parts(monkeypatch, capsys):
    path = str(MODELS / "mlp.pte")
    result = footprint.measure(path, "map")
    result["objects"] = footprint.objects(path, "map")
    # What is kept of 6 nodes: not the 5 MB of an interpreter, and not nothing.
    assert 10_000 < result["objects"] < 500_000
    table = "\n".join(footprint._table({"map": result}))
    for part in footprint.PART_TOLERANCES:
        assert f"  process, {part} " in table
    kept = footprint._kept(result)
    assert footprint._check({"mlp": {"map": kept}}, {"mlp": {"map": result}}) == 0
    capsys.readouterr()
    for figure, tolerance in (("process_activations", 0), ("process_program", 2 << 20),
                              ("objects", 0.15 * 0.5 * kept["objects"])):
        less = kept[figure] // 2 if figure == "objects" else kept[figure] - tolerance - 1
        old = {**kept, figure: less}
        assert footprint._check({"mlp": {"map": old}}, {"mlp": {"map": result}}) == 1
        assert f"mlp (map): {figure} grew from" in capsys.readouterr().out


def memos():
    gc.collect()
    return {id(thing) for thing in gc.get_objects() if isinstance(thing, Memo)}


def test_what_lowering_remembers_is_kept_for_other_sizes_only(device):
    before = memos()
    with vkrt.load(MODELS / "conv_mix.pte", device) as program:
        program.run(*inputs_of(program))
        assert memos() <= before
    with vkrt.load(MODELS / "conv-dyn.pte", device):
        assert memos() - before


@linux
def test_figures_of_the_process():
    assert {"VmRSS", "VmHWM", "RssAnon", "RssFile"} <= set(resident())
    assert resident()["VmHWM"] >= resident()["RssAnon"] > 0


@linux
def test_a_process_of_any_name():
    """The system's page of figures has the name of the process, in whatever encoding."""
    comm = f"/proc/self/task/{os.getpid()}/comm"
    with open(comm, "rb") as file:
        before = file.read()
    try:
        with open(comm, "wb") as file:
            file.write("größe".encode("latin-1"))
        assert resident()["VmRSS"] > 0
    finally:
        with open(comm, "wb") as file:
            file.write(before.strip())
