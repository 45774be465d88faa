"""Buffers that a program changes in place: they keep their values from run to run."""

import errno
from contextlib import closing

import numpy as np
import pytest
from data_samples import w
from support import MODELS, calls_of, failing, graph_of_file, need_model, open_method

import vkrt
from vkrt.compiler.description import Description
from vkrt.graph.graph import Graph, Node
from vkrt.graph.states import State
from vkrt.lowering.lowering import lower
from vkrt.memory.reader import fail_read_after
from vkrt.plan.plan import plan
from vkrt.runtime.handles import requirements_of
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Storage, Tensor, round_up


@pytest.fixture(scope="module")
def steps():
    return calls_of("buffers", "step")


def follow(program, steps, atol=1e-6):
    """Runs one after another."""
    for inputs, expected in steps:
        for result, wanted in zip(program.run(*inputs), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=atol)


@pytest.fixture
def load(load):
    return lambda name="buffers", **options: load(name, **options)


@pytest.mark.parametrize("weights", ["auto", "direct", "copy", "stream"])
def test_values_stay(storage, weights, load, steps):
    program = load(storage=storage, weights=weights)
    follow(program, steps)
    memory = program.memory
    assert memory.measured_peak == memory.planned_peak
    assert memory.state >= 4 * (6 + 15 + 15)
    program.reset_state()
    follow(program, steps)
    program.reset_state("forward")
    follow(program, steps[:2])
    assert not any("value 2" in record.name for record in memory.placements)


def test_on_a_device_with_memory_of_its_own(discrete, load, steps):
    for weights in ("auto", "stream"):
        program = load(device=discrete, weights=weights)
        follow(program, steps)
        program.reset_state()
        follow(program, steps)
        assert program.memory.measured_peak == program.memory.planned_peak


def test_each_loaded_program_has_its_own(load, steps):
    for program in (load(), load()):
        follow(program, steps)


def test_what_fails_changes_nothing(load, steps):
    program = load()
    follow(program, steps[:2])
    with pytest.raises(vkrt.InputError):
        program.run(np.zeros((2, 6), np.float32))
    follow(program, steps[2:])
    # Without fusions the weights are two, which can take turns.
    program = load(weights="stream", fusions="off")
    assert program.memory.streamed > 0
    follow(program, steps[:2])
    with failing(fail_read_after, 1), pytest.raises(OSError):
        program.run(*steps[2][0])
    follow(program, steps[2:])


def test_reset_reads_the_file(load, steps, copy_of):
    """A reset that fails can be done again, and names its file, whose name may be long."""
    path = copy_of("buffers")
    path = path.rename(path.with_name("buffers" * 20 + ".pte"))
    with load(path) as program:
        follow(program, steps[:1])
        with failing(fail_read_after, 1), pytest.raises(OSError) as caught:
            program.reset_state()
        assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(path))
        program.reset_state()
        follow(program, steps)
        path.write_bytes(b"something else")
        with pytest.raises(vkrt.FormatError, match="load the program again"):
            program.reset_state()
    with pytest.raises(ValueError, match="closed"):
        program.load_method("forward").state.reset()


def test_from_memory(load, steps):
    program = load((MODELS / "buffers.pte").read_bytes())
    follow(program, steps)
    program.reset_state()
    follow(program, steps)


def test_another_program(storage, load):
    path = need_model("kvbuf-alias.pte")
    follow(load(path, storage=storage), calls_of(path, "step"))


@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_with_dynamic_shapes(storage, weights, load, exact_sizes):
    """Runs at any sizes go on with the same values."""
    program = load("buffers_dynamic", storage=storage, weights=weights)
    for _ in range(2):
        follow(program, calls_of("buffers_dynamic", "step"), atol=1e-5)
        program.reset_state()
    assert program.memory.state == 32


def graph_of(sizes, nodes_of):
    """A graph of two states of these sizes, which begin as 0, 1, 2, .. and 1, 2, ..; `nodes_of`
    makes (outputs, the states' new tensors) of the graph and the states' tensors."""
    graph = Graph("forward")
    for number in range(2):
        before = Tensor(sizes, "float32", name=f"state {number}")
        constant = Constant(4 * number, 4 * before.numel, "float32")
        graph.states.append(State(constant, before, before))
    graph.outputs, after = nodes_of(graph, *(state.before for state in graph.states))
    for state, tensor in zip(graph.states, after, strict=True):
        state.after = tensor
    return graph.finish()


def node(graph, op, sizes, *args):
    out = Tensor(tuple(sizes), "float32", name=f"value {len(graph.nodes)}")
    graph.nodes.append(Node(op, args, (out,), f"node {len(graph.nodes)}"))
    return out


def changing_places(graph, one, two):
    """Each takes the other's value; what it was before is returned."""
    old = node(graph, "aten.clone.default", one.sizes, one, None)
    return [old], (node(graph, "aten.clone.default", one.sizes, two, None), old)


def turned(graph, one, two):
    """A view of the old value with its elements in another order is the new value."""
    view = node(graph, "aten.permute_copy.default", one.sizes[::-1], one, [1, 0])
    return [view], (view, node(graph, "aten.neg.default", two.sizes, two))


def as_they_were(graph, one, two):
    same = node(graph, "aten.clone.default", one.sizes, one, None)
    return [node(graph, "aten.neg.default", one.sizes, one)], (
        same, node(graph, "aten.clone.default", two.sizes, two, None))


@pytest.mark.parametrize(("sizes", "nodes", "expected"), [
    ((3, 5), changing_places, lambda a, b: (a, (b, a))),
    ((4, 4), turned, lambda a, b: (a.T, (a.T, -b))),
    ((5, 5), turned, lambda a, b: (a.T, (a.T, -b))),
    ((2, 8), as_they_were, lambda a, b: (-a, (a, b))),
])
def test_old_values(sizes, nodes, expected, storage, device):
    """Views of the value before the run are what they were, whatever the run leaves."""
    data = np.arange(64, dtype=np.float32).tobytes()
    count = int(np.prod(sizes))
    values = [np.frombuffer(data, np.float32, count, 4 * k).reshape(sizes) for k in range(2)]
    with open_method(graph_of(sizes, nodes), data, device, storage=storage) as method:
        for _ in range(3):
            result, = method.execute([])
            wanted, values = expected(*values)
            np.testing.assert_array_equal(result, wanted)


def test_the_plan_keeps_them_apart():
    """No other storage shares their bytes, and what fails is planned: they count in the peak."""
    work = lower(graph_of_file("buffers"), Target())
    result = plan(work)
    block, = (block for block in result.blocks if block.kind == "state")
    assert len(block.places) == len(work.states) == 3
    ends = [0, *(place.end for place in block.places)]
    assert all(place.offset >= end for place, end in zip(block.places, ends))
    assert block.nbytes == result.state_bytes <= result.run_bytes <= result.peak_bytes
    assert not {place.storage for place in block.places} & {
        place.storage for other in result.blocks if other is not block for place in other.places}


@pytest.mark.parametrize(("second", "words"), [
    (("aten.relu.default", 0, 2), "alias_buffer_mutations=True"),
    (("aten.abs.default", 0, 1), "buffer mutated in place by aten.abs.default")])
def test_other_changes_of_buffers_are_refused(second, words):
    """A delegate has another result than the call names, or writes twice what no prepack made."""
    results = sorted({1, second[-1]})
    blob = w.blob(w.graph(
        values=[w.vk_tensor([2, 4]) for _ in (0, *results)],
        chain=[w.call("aten.relu.default", 0, 1), w.call(*second)], inputs=[0], outputs=results))
    data = w.program([w.plan(
        values=[w.tensor([2, 4]), w.tensor([2, 4])], inputs=[0], outputs=[1],
        instructions=[w.union(2, w.Table({0: w.i32(0), 1: w.i32s(0, 1)}))],
        delegates=[w.delegate(0)])], segments=[blob])
    with closing(Description(data)) as description, \
            pytest.raises(vkrt.UnsupportedError, match=words):
        lower(description.graph("forward"), Target())


@pytest.mark.parametrize("size", [4, 16])
def test_a_buffer_of_other_sizes_is_none_of_dynamic_ones(size):
    """The program says that the sizes of what it keeps change, and the delegate has others."""
    blob = w.blob(w.graph(values=[w.vk_tensor([8]), w.vk_tensor([8])],
                          chain=[w.call("aten.relu.default", 0, 1)], inputs=[0], outputs=[1]))
    values = [w.tensor([8], memory=(1, 0)),
              w.tensor([size], memory=(1, 32), buffer=1, _8=w.i8(1)),
              w.tensor([size], memory=(1, 96))]
    instructions = [w.union(1, w.Table({0: w.i32(0), 1: w.i32s(1, 2, 2)})),
                    w.union(2, w.Table({0: w.i32(0), 1: w.i32s(0, 1)}))]
    data = w.program([w.plan(values, inputs=[0], outputs=[2], operators=[("aten::relu", "out")],
                             instructions=instructions, delegates=[w.delegate(0)],
                             buffers=(0, 160))],
                     segments=[blob, bytes(4 * size)],
                     _6=w.tables(w.Table({0: w.u32(1), 1: w.Vector("Q", [0, 0])})))
    with closing(Description(data)) as description, \
            pytest.raises(vkrt.FormatError, match=rf"sizes \[8\], .*\[{size}\]"):
        description.graph("forward")


# Buffers that kernels outside of delegates change


@pytest.mark.parametrize(("name", "caches", "numel"), [
    ("kept", 1, 96), ("kept_attention", 4, 96), ("kept_batch", 2, 192), ("kept_ring", 2, 192)])
def test_caches_of_the_program(name, caches, numel, storage, device, load, exact_sizes):
    """They begin with zeros, keep their values, and are apart in a further state."""
    steps = calls_of(name, "step")
    program = load(name, storage=storage)
    _, alignment, _ = requirements_of(device)(Storage(0, "activation", 4 * numel, "float32"))
    assert program.memory.state == (caches - 1) * round_up(4 * numel, alignment) + 4 * numel
    for _ in range(2):
        for number, (inputs, expected) in enumerate(steps):
            if number == 1:
                with program.new_state() as other:
                    program.run(*inputs, state=other)
            follow(program, [(inputs, expected)])
        program.reset_state()
    assert program.memory.measured_peak == program.memory.planned_peak
    assert not any(array.any() for array in program.save_state().values())


@pytest.mark.parametrize(("name", "caches"), [
    ("kept_attention", 4), ("kept_batch", 2), ("kept_ring", 2)])
def test_kernels_of_caches_run_on_the_device(name, caches):
    graph = graph_of_file(name)
    assert not any(node.is_host for node in graph.nodes)
    assert len(graph.states) == caches
    # The position is left to kernels.
    assert not graph.reads


def test_a_buffer_of_the_program_begins_with_data(load):
    """Planned memory with data in the file is a buffer."""
    data = np.arange(8, dtype=np.float32)
    buffer = w.tensor([2, 4], buffer=1, memory=(1, 32), _9=w.Table({0: w.u64(0)}))
    values = [w.tensor([2, 4], memory=(1, 0)), buffer, w.tensor([2, 4], memory=(1, 64)),
              w.vk_int(1), w.union(3, w.Table())]
    calls = [w.union(1, w.Table({0: w.i32(op), 1: w.i32s(*args)}))
             for op, args in ((0, (0, 1, 3, 2, 2)), (1, (1, 2, 4, 1)))]
    program = w.program([w.plan(
        values=values, inputs=[0], outputs=[2], instructions=calls,
        operators=[("aten::add", "out"), ("aten::copy_", "")], buffers=(0, 96))],
        segments=[data.tobytes()], _6=w.tables(w.Table({0: w.u32(0), 1: w.i64s(0, 0)})))
    x = np.ones((2, 4), np.float32)
    loaded = load(program)
    for _ in range(2):
        for number in range(1, 4):
            np.testing.assert_array_equal(loaded.run(x)[0], data.reshape(2, 4) + number)
        loaded.reset_state()
