"""Graphs at the sizes of a call: what changes, what stays the same object, what is refused."""

from dataclasses import replace

import pytest
from graph_maker import DynamicGraph, constant, new_node
from support import graph_of_file

from vkrt.dynamic.extremes import largest_and_near
from vkrt.dynamic.ranges import find_dynamic
from vkrt.dynamic.resolve import resolve
from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import compute, size_of, symbols_in
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import operators
from vkrt.work.limits import Read
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


@pytest.fixture
def pair():
    return graph_of_file("pair-dyn")


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


def test_as_many_results_as_the_program_has():
    """A tensor may have more parts at other sizes, or fewer; no program says that."""
    x = Tensor((8, 4), "float32", name="x", dynamic_dims=(0,))
    node = new_node("aten.split_copy.Tensor", x, 3, 0)
    graph = Graph("made", [x], list(node.outs), [node], chain=[node]).finish()
    find_dynamic(graph)
    assert [out.sizes for out in resolve(graph, [(7, 4)]).outputs] == [(3, 4), (3, 4), (1, 4)]
    with pytest.raises(InputError, match="aten.split_copy.*: 2 results, the program has 3"):
        resolve(graph, [(6, 4)])


def test_inputs_of_one_size_have_to_agree():
    """Where one of them had size 1, its row would be repeated."""
    x, y, row = (Tensor((n, 4), "float32", name=name, dynamic_dims=(0,) * (n > 1))
                 for n, name in ((8, "x"), (8, "y"), (1, "row")))
    make = DynamicGraph(x, y, row)
    total = make.add("aten.add.Tensor", (x, y, 1), 8, 4)
    graph = make.finish(make.add("aten.mul.Tensor", (total, row), 8, 4), finds_dynamic=True)
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
    make, args = DynamicGraph(x, y, row), arguments(x, y, row)
    make.graph.chain += symbols_in(args)
    graph = make.finish(make.add(op, args, 8, 4, dtype=dtype), finds_dynamic=True)
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
    read, make = Read(1, 0), DynamicGraph(x, position)
    start, length = make.symbol("read", read), make.symbol("size", x, 0)
    end = make.symbol("add", start, length, bound=4)
    rows = make.add("aten.slice_copy.Tensor", (constant(8, 2), 0, start, end, 1), 4, 2)
    make.graph.output_symbols = {1: end}
    return make.finish(make.add("aten.add.Tensor", (rows, x, 1), 4, 2), 4), read


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
    make = DynamicGraph(x)
    joined = make.add("aten.cat.default", ([x, x], 0), 12, 4)
    rows = make.symbol("size", joined, 0)
    graph = make.finish(make.add("aten.full.default", ([rows, 2], 1.0), 12, 2))
    assert [node.op for node in graph.nodes] == ["aten.full.default"]
    assert resolve(graph, [(5, 4)]).outputs[0].sizes == (10, 2)


def test_find_dynamic_leaves_what_has_to_stay():
    """Channels of a linear layer cannot be fewer; rows can."""
    x = Tensor((2, 5, 4), "float32", dynamic_dims=(0, 1, 2))
    make = DynamicGraph(x)
    graph = make.finish(make.add("aten.linear.default", (x, constant(3, 4), None), 2, 5, 3),
                        finds_dynamic=True)
    assert x.dynamic_dims == (0, 1) and graph.outputs[0].dynamic_dims == (0, 1)
    near = largest_and_near(graph)
    assert [g.inputs[0].sizes for g in near] == [(2, 5, 4), (1, 4, 4)]


def test_many_inputs_are_not_tried_for_ever():
    """Beyond a number of tries the rest counts as dynamic."""
    weight = constant(3, 5)
    make = DynamicGraph(*(Tensor((4, 5), "float32", dynamic_dims=(0, 1)) for _ in range(30)))
    graph = make.finish(*(make.add("aten.linear.default", (x, weight, None), 4, 3)
                          for x in make.graph.inputs), finds_dynamic=True)
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
    make = DynamicGraph(x)
    less = make.symbol("sub", make.symbol("size", x, 0), 2, bound=2)
    part = make.symbol("floordiv", 8, less, bound=4)
    graph = make.finish(make.add("aten.full.default", ([part], 0.0), 4))
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
    make = DynamicGraph(fixed, x)
    before = make.add("aten.relu.default", (fixed,), 1, 4)
    joined = make.add("aten.add.Tensor", (x, before, 1), 6, 4)
    graph = make.finish(joined, make.add("aten.neg.default", (before,), 1, 4))
    base = lower(graph, Target())
    small = resolve(graph, [(1, 4), (2, 4)])
    assert small.nodes[2] is graph.nodes[2]
    other = lower(small, Target(), base)
    kept = [step.node for step in other.steps if any(step is old for old in base.steps)]
    assert kept == [0]
