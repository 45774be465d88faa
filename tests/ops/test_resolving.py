"""Graphs at the sizes of a call: what changes, what stays the same object, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import graph_of_file

from vkrt.dynamic.extremes import largest_and_near
from vkrt.dynamic.ranges import find_dynamic
from vkrt.dynamic.resolve import resolve
from vkrt.errors import InputError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol, bounded, compute, size_of, symbols_in
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import operators
from vkrt.work.limits import Read
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor


@pytest.fixture
def pair():
    return graph_of_file("pair-dyn")


def add(graph: Graph, op: str, args, *outs: Tensor) -> Tensor:
    """A node at the end of a graph made by hand."""
    formulas = args if bounded(args) != args else None
    node = Node(op, bounded(args), outs, f"node {len(graph.nodes)}", formulas=formulas)
    graph.nodes.append(node)
    graph.chain.append(node)
    return outs[0]


def test_the_bounds_are_the_graph_itself(pair):
    assert resolve(pair, [(32, 6), (32, 6), (1, 4)]) is pair


def test_sizes_follow_from_the_inputs(pair):
    small = resolve(pair, [(6, 6), (6, 6), (1, 4)])
    assert [t.sizes for t in small.inputs] == [(6, 6), (6, 6), (1, 4)]
    assert [t.sizes for t in small.outputs] == [(3, 7), (6, 8)]
    view = next(node for node in small.nodes if node.op == "aten.view_copy.default")
    assert view.args[1] == [3, 28] and view.formulas is None
    assert [t.sizes for t in pair.outputs] == [(16, 7), (32, 8)]


def test_what_depends_on_no_change_is_the_same_object(pair):
    small = resolve(pair, [(6, 6), (6, 6), (1, 4)])
    same = [node.op for a, node in zip(small.nodes, pair.nodes, strict=True) if a is node]
    # The gate, made from the input of fixed sizes
    assert same == ["aten.linear.default", "aten.sigmoid.default"]
    assert small.inputs[2] is pair.inputs[2] and small.inputs[0] is not pair.inputs[0]


def test_fixed_sizes_behind_dynamic_ones():
    """What is made from a mean over all dynamic dimensions stays the same objects."""
    graph = graph_of_file("conv-dyn")
    small = resolve(graph, [(1, 3, 16, 18)])
    assert small.outputs[1] is graph.outputs[1]
    same = [node.op for a, node in zip(small.nodes, graph.nodes, strict=True) if a is node]
    assert same == ["aten.linear.default"]


def test_weights_are_shared_by_the_command_lists(pair):
    base = lower(pair, Target())
    other = lower(resolve(pair, [(6, 6), (6, 6), (1, 4)]), Target(), base)
    assert other.prepacks == base.prepacks
    assert other.storages[:len(base.storages)] == base.storages
    read = {o.storage for step in other.steps for o in step.reads if o.storage.role == "weight"}
    assert read and read <= set(base.storages)


@pytest.mark.parametrize(("sizes", "words"), [
    ([(8, 6), (6, 6), (1, 4)], r"'forward' cannot run on inputs float32\[8,6\], .*aten.cat"),
    ([(7, 6), (7, 6), (1, 4)], r"aten.view_copy.default .*does not hold the 98 elements"),
])
def test_sizes_that_contradict_each_other(pair, sizes, words):
    with pytest.raises(InputError, match=words):
        resolve(pair, sizes)


def test_inputs_of_one_size_have_to_agree():
    """Where one of them had size 1, its row would be repeated."""
    x, y, row = (Tensor((n, 4), "float32", name=name, dynamic_dims=(0,) * (n > 1))
                 for n, name in ((8, "x"), (8, "y"), (1, "row")))
    graph = Graph("forward", [x, y, row], [], [])
    total, out = Tensor((8, 4), "float32"), Tensor((8, 4), "float32")
    add(graph, "aten.add.Tensor", (x, y, 1), total)
    graph.outputs.append(add(graph, "aten.mul.Tensor", (total, row), out))
    graph.finish()
    find_dynamic(graph)
    assert resolve(graph, [(5, 4), (5, 4), (1, 4)]).outputs[0].sizes == (5, 4)
    for sizes, got in (((1, 4), "1 and 5"), ((5, 4), "5 and 1")):
        others = (6 - sizes[0], 4)
        with pytest.raises(InputError, match=rf"one size for dimension 0 of .*x.* and dimension 0 "
                                             rf"of .*y.*, got {got}; pass"):
            resolve(graph, [sizes, others, (1, 4)])


# Operators that repeat tensors: the dtype of x, y and the result, the arguments
BROADCASTS = {
    "aten.where.self": ("float32", lambda x, y, row: (row, x, y)),
    "aten.div.Tensor_mode": ("float32", lambda x, y, _row: (x, y, "floor")),
    "aten.clamp.Tensor": ("float32", lambda x, y, _row: (x, None, y)),
    "aten.masked_fill.Scalar": ("float32", lambda x, y, _row: (x, y, 0.5)),
    "aten.copy.default": ("float32", lambda x, y, _row: (x, y, False)),
    "aten.expand_copy.default": ("float32", lambda x, y, _row: (y, [size_of(x, 0), 4])),
    "aten.addmm.default": ("float32", lambda x, y, row: (y, x, row, 1, 1)),
    "et_vk.binary_add_with_clamp.default": ("float32", lambda x, y, _row: (x, y, 0.0, 6.0)),
    "et_vk.binary_div_with_clamp.default": ("float32", lambda x, y, _row: (x, y, 0.0, 6.0)),
    "et_vk.q8ta_add.default": ("int8", lambda x, y, _row: (x, y, .1, 0, .1, 0, .1, 0, 1.0)),
    "aten::masked_scatter.out": ("float32", lambda x, y, _row: (x, y, x)),
}


@pytest.mark.parametrize("op", BROADCASTS)
def test_what_repeats_tensors_wants_inputs_of_one_size_to_agree(op):
    """A row that the file has as one, such as `row`, is repeated."""
    dtype, arguments = BROADCASTS[op]
    x, y = (Tensor((8, 4), dtype, name=name, dynamic_dims=(0,)) for name in ("x", "y"))
    sizes, kind = ((4, 4), "float32") if "addmm" in op else ((1, 4), "bool")
    if "mask" in op:
        y = replace(y, dtype="bool", host_dtype="bool")
    row = Tensor(sizes, kind, name="row")
    graph = Graph("forward", [x, y, row], [], [])
    args = arguments(x, y, row)
    for size in symbols_in(args):
        graph.chain.append(size)
    graph.outputs.append(add(graph, op, args, Tensor((8, 4), dtype)))
    find_dynamic(graph.finish())
    assert resolve(graph, [(5, 4), (5, 4), sizes]).outputs[0].sizes == (5, 4)
    assert resolve(graph, [(1, 4), (1, 4), sizes]).outputs[0].sizes == (1, 4)
    with pytest.raises(InputError, match=rf"{op} .*node 0.*: the program has one size for "
                                         r"dimension 0 of .*, got (5 and 1|1 and 5); pass inputs"):
        resolve(graph, [(5, 4), (1, 4), sizes])


def test_what_is_repeated_is_a_parameter():
    for operator in operators():
        names = [parameter.name for parameter in operator.schema.parameters
                 if parameter.kind == "T" and not parameter.is_list]
        assert set(operator.broadcasts) <= set(names), operator.name


def test_dynamic_dimensions_are_found(pair):
    """The file says that the first two inputs are dynamic: in dimension 0, and only together."""
    assert [t.dynamic_dims for t in pair.inputs] == [(0,), (0,), ()]
    assert [t.dynamic_dims for t in pair.outputs] == [(0,), (0,)]
    assert pair.is_dynamic
    # One less does not divide by 2.
    assert [g.inputs[0].sizes for g in largest_and_near(pair)] == [(32, 6), (30, 6)]


def test_fixed_programs_are_not_dynamic():
    graph = graph_of_file("mlp")
    assert not graph.is_dynamic and graph.chain == [] and largest_and_near(graph) == [graph]


def reading_graph() -> tuple[Graph, Read]:
    """Rows [p, p + S) of a table, where S is a size and p an element of the second input."""
    x = Tensor((4, 2), "float32", dynamic_dims=(0,))
    position = Tensor((1,), "int32")
    table = Tensor((8, 2), "float32", constant=Constant(0, 64, "float32"))
    read = Read(1, 0)
    graph = Graph("reading", [x, position])
    start = Symbol("read", (read,), 0)
    length = size_of(x, 0)
    end = Symbol("add", (start, length), 4)
    graph.chain += [start, length, end]
    rows = add(graph, "aten.slice_copy.Tensor", (table, 0, start, end, 1),
               Tensor((4, 2), "float32"))
    out = add(graph, "aten.add.Tensor", (rows, x, 1), Tensor((4, 2), "float32"))
    graph.outputs = [out, 4]
    graph.output_symbols = {1: end}
    return graph.finish(), read


def test_values_read_from_inputs():
    graph, read = reading_graph()
    assert graph.reads == (read,)
    found = resolve(graph, [(3, 2), (1,)], {read: 5})
    assert found.nodes[0].args[1:] == (0, 5, 8, 1)
    assert found.outputs[0].sizes == (3, 2) and found.outputs[1] == 8
    with pytest.raises(InputError, match=r"input 1 holds 6: aten.add.Tensor .*broadcast"):
        resolve(graph, [(3, 2), (1,)], {read: 6})
    moved = resolve(graph, [(4, 2), (1,)], {read: 1})
    assert moved is not graph and moved.nodes[1] is graph.nodes[1]


def test_sizes_of_what_nobody_reads():
    """A tensor that is there for its size alone: no node runs, its size is known."""
    x = Tensor((6, 4), "float32", dynamic_dims=(0,))
    graph = Graph("sizes", [x])
    joined = add(graph, "aten.cat.default", ([x, x], 0), Tensor((12, 4), "float32"))
    rows = size_of(joined, 0)
    graph.chain.append(rows)
    out = add(graph, "aten.full.default", ([rows, 2], 1.0), Tensor((12, 2), "float32"))
    graph.outputs = [out]
    graph.finish()
    assert [node.op for node in graph.nodes] == ["aten.full.default"]
    assert resolve(graph, [(5, 4)]).outputs[0].sizes == (10, 2)


def test_find_dynamic_leaves_what_has_to_stay():
    """Channels of a linear layer cannot be fewer; rows can."""
    weight = Tensor((3, 4), "float32", constant=Constant(0, 48, "float32"))
    x = Tensor((2, 5, 4), "float32", dynamic_dims=(0, 1, 2))
    graph = Graph("linear", [x])
    graph.outputs = [add(graph, "aten.linear.default", (x, weight, None),
                         Tensor((2, 5, 3), "float32"))]
    find_dynamic(graph.finish())
    assert x.dynamic_dims == (0, 1) and graph.outputs[0].dynamic_dims == (0, 1)
    near = largest_and_near(graph)
    assert [g.inputs[0].sizes for g in near] == [(2, 5, 4), (1, 4, 4)]


def test_many_inputs_are_not_tried_for_ever():
    """Beyond a number of tries the rest counts as dynamic."""
    weight = Tensor((3, 5), "float32", constant=Constant(0, 60, "float32"))
    graph = Graph("many", [Tensor((4, 5), "float32", dynamic_dims=(0, 1)) for _ in range(30)])
    graph.outputs = [add(graph, "aten.linear.default", (x, weight, None), Tensor((4, 3), "float32"))
                     for x in graph.inputs]
    find_dynamic(graph.finish())
    dims = [x.dynamic_dims for x in graph.inputs]
    assert dims[0] == (0,) and dims[-1] == (0, 1)


@pytest.mark.parametrize(("kind", "a", "b", "result"), [
    ("add", 3, 4, 7), ("sub", 3, 4, -1), ("mul", 3, 4, 12), ("floordiv", 7, 2, 3),
    ("floordiv", -7, 2, -4)])
def test_arithmetic(kind, a, b, result):
    assert compute(kind, a, b) == result


@pytest.mark.parametrize(("kind", "a", "b"), [
    ("floordiv", 1, 0), ("mul", 1 << 20, 1 << 20), ("add", 1 << 30, 1 << 30)])
def test_arithmetic_that_has_no_result(kind, a, b):
    with pytest.raises(ArithmeticError):
        compute(kind, a, b)


def test_division_by_a_size_that_becomes_0():
    x = Tensor((4,), "float32", dynamic_dims=(0,))
    graph = Graph("division", [x])
    size = size_of(x, 0)
    less = Symbol("sub", (size, 2), 2)
    part = Symbol("floordiv", (8, less), 4)
    graph.chain += [size, less, part]
    graph.outputs = [add(graph, "aten.full.default", ([part], 0.0), Tensor((4,), "float32"))]
    graph.finish()
    assert resolve(graph, [(3,)]).outputs[0].sizes == (8,)
    with pytest.raises(InputError, match=r"a symbol \(floordiv\)"):
        resolve(graph, [(2,)])


# Records


def records(pair, target, *sizes):
    base = lower(pair, target)
    return base, lower(resolve(pair, list(sizes)), target, base)


@pytest.mark.parametrize(("fuses", "expected"), [
    (False, ["aten.linear.default", "aten.sigmoid.default"]),
    # The sigmoid ends the layer.
    (True, ["aten.linear.default"]),
])
def test_records_of_what_does_not_change_are_the_same(pair, fuses, expected):
    base, other = records(pair, Target(fuses=fuses), (6, 6), (6, 6), (1, 4))
    same = {step.node for step in other.steps if any(step is old for old in base.steps)}
    # The gate: two nodes, of which the second is looked at by one that changes.
    assert [pair.nodes[n].op for n in sorted(same)] == expected
    assert other.inputs[2] is base.inputs[2] and other.inputs[0] is not base.inputs[0]


def test_all_records_are_the_same_where_nothing_changes(pair):
    base = lower(pair, Target())
    again = lower(pair, Target(), base)
    # But for what brings the outputs to the border, which is no node's.
    kept = [step for step in base.steps if step.node < len(pair.nodes)]
    assert kept and all(a is b for a, b in zip(again.steps, kept))
    assert again.inputs == base.inputs


def test_a_node_behind_one_that_changes_is_not_reused():
    """Fixed tensors that a changed node has looked at may lie otherwise: no records are kept."""
    fixed, x = Tensor((1, 4), "float32"), Tensor((6, 4), "float32", dynamic_dims=(0,))
    graph = Graph("taint", [fixed, x])
    before = add(graph, "aten.relu.default", (fixed,), Tensor((1, 4), "float32"))
    joined = add(graph, "aten.add.Tensor", (x, before, 1), Tensor((6, 4), "float32"))
    after = add(graph, "aten.neg.default", (before,), Tensor((1, 4), "float32"))
    graph.outputs = [joined, after]
    graph.finish()
    base = lower(graph, Target())
    small = resolve(graph, [(1, 4), (2, 4)])
    assert small.nodes[2] is graph.nodes[2]
    other = lower(small, Target(), base)
    kept = [step.node for step in other.steps if any(step is old for old in base.steps)]
    assert kept == [0]
