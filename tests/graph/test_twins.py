"""Buffers that one delegate of a program changes and another one has as a constant."""

from contextlib import closing

import numpy as np
import pytest
from support import MODELS, calls_of

from vkrt.compiler.description import Description
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Node
from vkrt.graph.states import State, States
from vkrt.graph.twins import join_twins
from vkrt.work.tensor import Constant, Tensor


@pytest.fixture
def data():
    return (MODELS / "twins.pte").read_bytes()


def graph_of(data):
    with closing(Description(data)) as description:
        return description.graph("forward")


def table_of(data):
    """The bytes with which the buffer begins."""
    (state,) = graph_of(data).states
    return data[state.initial.offset:][:state.initial.nbytes]


def test_the_reader_reads_the_state(data):
    graph = graph_of(data)
    (state,) = graph.states
    readers = [node for node in graph.nodes if state.before in node.tensors()]
    assert {node.label.split(" node")[0] for node in readers} == {"delegate 0", "delegate 1"}


def test_the_report_says_so(load, data):
    """Another tensor may have the bytes of the buffer by chance."""
    program = load("twins")
    notes = [note for note in program.memory.notes if "is taken for that buffer" in note]
    assert len(notes) == 1 and "delegate 0 value" in notes[0]
    assert graph_of(data).notes == notes


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_of_bytes_that_anything_may_have_the_file_does_not_say(data, value):
    table = table_of(data)
    assert data.count(table) == 1  # constants of equal bytes are in the file once
    data = data.replace(table, np.full(len(table) // 4, value, "<f4").tobytes())
    with pytest.raises(UnsupportedError, match=r"delegate 0 value \d+, a constant float32\[6,8\], "
                                               r"has the bytes .* \(delegate 1 value \d+\)"):
        graph_of(data)


def joined(sizes, dtype, bits):
    """What a node reads of a constant of another delegate than the state's with the same bytes."""
    constant = Constant(2, len(bits), dtype, "key")
    x, before = (Tensor(sizes, "float32", constant=constant if given else None)
                 for given in (True, False))
    node = Node("aten.relu.default", (x,), (Tensor(sizes, "float32"),))
    join_twins([node], [], {x: 0}, [(1, State(constant, before, before))], [b"??" + bits])
    return node.args[0] is before


def test_elements_are_as_wide_as_in_the_file():
    assert joined((3,), "bfloat16", b"abcdab") and joined((2,), "float32", b"abcdabce")
    assert not joined((0,), "float32", b"")
    for sizes, dtype, bits in (((3,), "bfloat16", b"ababab"), ((2,), "float32", b"abcdabcd")):
        with pytest.raises(UnsupportedError, match="has the bytes"):
            joined(sizes, dtype, bits)


def overwritten(reader="", bits=bytes(12), more=(), target="aten.slice_scatter.default"):
    """The tensor of a buffer before a run and what a node reads that had a constant: the product of
    both is written over the buffer. `reader` is an operator that reads the buffer too, `more` are
    constants that are added to the product, `bits` is what the constant begins with."""
    before, part, after = Tensor((3,), "float32"), Tensor((3,), "float32"), Tensor((3,), "float32")
    constants = [Tensor((3,), "float32", constant=Constant(2, 12, "float32"))
                 for _ in range(1 + len(more))]
    state = State(Constant(0, 12, "float32", zeros=True), before, after)
    product = Node("aten.mul.Tensor", (constants[0], 2.0), (part,))
    nodes = [product]
    for constant in constants[1:]:
        part, former = Tensor((3,), "float32"), part
        nodes.append(Node("aten.add.Tensor", (former, constant), (part,)))
    nodes.append(Node(target, (before, part, 0, 0, 3, 1), (after,)))
    if reader:
        nodes.append(Node(reader, (before,), (Tensor((3,), "float32"),)))
    join_twins(nodes, [], dict.fromkeys(constants, 0), [(States.OUTSIDE, state)], [b"??" + bits])
    return before, product.args[0]


def test_a_buffer_that_nothing_reads_is_read_as_a_constant():
    before, read = overwritten()
    assert read is before
    with pytest.raises(UnsupportedError, match=r"float32\[3\], is written over .*left out"):
        overwritten(bits=bytes(range(12)))


@pytest.mark.parametrize("options", [
    {"reader": "aten.relu.default"}, {"more": (1,)}, {"target": "aten.add.Tensor"}])
def test_other_buffers_are_in_doubt(options):
    with pytest.raises(UnsupportedError, match="has the bytes"):
        overwritten(**options)
    before, read = overwritten(bits=bytes(range(12)), **options)
    assert read is not before


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"fusions": "off"}])
def test_later_runs_are_right_too(load, options):
    program = load("twins", **options)
    for _ in range(2):
        for inputs, expected in calls_of("twins", "step"):
            for result, wanted in zip(program.run(*inputs), expected, strict=True):
                np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
        program.reset_state()
