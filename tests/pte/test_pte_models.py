"""Programs made by the real exporter, and what reading costs."""

import mmap
import re
import sys
import tracemalloc
from pathlib import Path

import pte_writer as w
import pytest
from pte_samples import KEY, external_of, model_files, read_all, sample_blob

from vkrt.pte import VkTensor, read_external

MODELS = model_files()
# Programs that are kernels alone
NO_DELEGATES = {"kept_attention", "kept_ring", "numbers-dyn", "quantized_kernels", "views"}
# Of which a delegate is passed values that its blob does not name: inputs of 64 bits, handed on; a
# buffer that is overwritten
MORE_VALUES = {"counted", "masks", "recurrent"}


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_model(path):
    external = external_of(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        program, graphs = read_all(data, external)
    plan = program.plan("forward") or program.plans[0]
    assert plan.instructions and plan.inputs and plan.outputs
    assert bool(graphs) == (path.stem not in NO_DELEGATES)
    assert program.nbytes == path.stat().st_size
    unnamed: list[bool] = []
    for instruction, graph in graphs:
        named = len(graph.input_ids) + len(graph.output_ids)
        unnamed.append(len(instruction.args) > named)
        assert len(instruction.args) >= named
        assert graph.version == "0" and graph.chain and graph.values
        for value in graph.values:
            if isinstance(value, VkTensor) and value.constant >= 0:
                assert graph.constants[value.constant].span.nbytes >= value.nbytes
    assert any(unnamed) == (path.stem in MORE_VALUES)


def test_external_models():
    for path in model_files(suffix=".ptd"):
        named = read_external(path.read_bytes())
        assert named and all(re.fullmatch("[0-9a-f]{64}", key) for key in named)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_are_not_touched(tmp_path):
    """A 256 MB segment (a hole in a sparse file) costs neither pages nor memory."""
    weight = 1 << 28
    blob = sample_blob()
    data = w.program([w.plan(delegates=[w.delegate(0)], values=[w.vk_int(0), w.vk_int(1)],
                             instructions=[w.union(2, w.Table({1: w.i32s(0, 1)}))])],
                     segments=[blob, b""], named=[(KEY, 1)],
                     _4=w.tables(w.Table({0: w.u64(0), 1: w.u64(len(blob))}),
                                 w.Table({0: w.u64(4096), 1: w.u64(weight)})))
    base = int.from_bytes(data[24:32], "little")
    data = data[:32] + (4096 + weight).to_bytes(8, "little") + data[40:]
    path = tmp_path / "big.pte"
    with path.open("wb") as file:
        file.write(data)
        file.truncate(base + 4096 + weight)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        tracemalloc.start()
        program, graphs = read_all(mapping)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        smaps = Path("/proc/self/smaps").read_text()
    assert len(graphs) == 1 and program.named_data[KEY].nbytes == weight
    resident = re.search(r"big\.pte\n(?:.*\n)*?Rss:\s+(\d+) kB", smaps)
    assert int(resident.group(1)) < 1024
    assert peak < 1 << 20
