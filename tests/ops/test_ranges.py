"""Sizes of graphs from files, whose numbers are bounds: what calls may change, what needs most."""

import itertools
from functools import partialmethod

import pytest
from graph_maker import DynamicGraph, constant

from vkrt.dynamic.extremes import MAX_POINTS, largest_and_near, live_bytes
from vkrt.dynamic.resolve import resolve
from vkrt.errors import FormatError, InputError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.plan.blocks import activation_blocks
from vkrt.plan.plan import default_requirements
from vkrt.work.limits import Read
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


class Maker(DynamicGraph):
    finish = partialmethod(DynamicGraph.finish, finds_dynamic=True)


def rows(count: int) -> Tensor:
    return Tensor((count, 4), "float32", dynamic_dims=(0,))


def rest_of_a_table(bound: int = 30) -> Graph:
    x = rows(16)
    make = Maker(x)
    size = make.symbol("size", x, 0)
    rest = make.add("aten.slice_copy.Tensor", (constant(32, 4), 0, size, None, 1), bound, 4)
    return make.finish(make.add("aten.relu.default", (rest,), bound, 4),
                       make.add("aten.abs.default", (x,), 16, 4))


def test_sizes_are_those_of_one_call():
    graph = rest_of_a_table()
    rest, like_x = graph.outputs
    assert (rest.sizes, rest.bounds, rest.dynamic_dims) == ((16, 4), (30, 4), (0,))
    assert (like_x.sizes, like_x.bounds) == ((16, 4), (16, 4))
    assert resolve(graph, [(2, 4)]).outputs[0].sizes == (30, 4)
    lower(graph, Target())
    with pytest.raises(InputError, match=r"float32\[1,4\]: aten.slice_copy.Tensor .*result 0 "
                                         r"would have sizes \[31, 4\], .*no more than \[30, 4\]"):
        resolve(graph, [(1, 4)])


def test_more_than_the_bound_at_every_size_contradicts_the_file():
    with pytest.raises(FormatError, match=r"expected sizes \[16, 4\], the file says \[15, 4\]"):
        lower(rest_of_a_table(15), Target())


def test_a_result_of_another_rank_contradicts_the_file():
    x = Tensor((8,), "float32", dynamic_dims=(0,))
    make = Maker(x)
    with pytest.raises(FormatError, match=r"expected sizes \[8\], the file says \[2, 4\]"):
        lower(make.finish(make.add("aten.relu.default", (x,), 2, 4)), Target())


def test_what_no_input_changes_has_exactly_the_sizes_of_the_file():
    x = rows(16)
    make = Maker(x)
    fixed = make.add("aten.relu.default", (constant(5, 4),), 6, 4)
    graph = make.finish(fixed, make.add("aten.abs.default", (x,), 16, 4))
    assert fixed.bounds is None
    with pytest.raises(FormatError, match=r"expected sizes \[5, 4\], the file says \[6, 4\]"):
        lower(graph, Target())


def test_largest_inputs_that_do_not_go_together():
    """Rows that two inputs leave of 20: there is no call with 16 and 12."""
    x, y = rows(16), rows(12)
    make = Maker(x, y)
    both = make.symbol("add", make.symbol("size", x, 0), make.symbol("size", y, 0))
    left = make.symbol("sub", 20, both)
    graph = make.finish(make.add("aten.full.default", ([left, 4], 1.0), 16, 4),
                        make.add("aten.cat.default", ([x, y], 0), 20, 4))
    assert [t.bounds for t in graph.inputs] == [(16, 4), (12, 4)]
    assert sum(t.sizes[0] for t in graph.inputs) <= 20
    assert [t.dynamic_dims for t in graph.inputs] == [(0,), (0,)]
    lower(graph, Target())
    found = resolve(graph, [(16, 4), (3, 4)])
    assert [t.sizes for t in found.outputs] == [(1, 4), (19, 4)]
    with pytest.raises(InputError, match="expected at least 0, got -8"):
        resolve(graph, [(16, 4), (12, 4)])


@pytest.mark.parametrize("width", [1, 2], ids=["alike", "twice"])
def test_a_size_that_is_in_three_places(width):
    """Rows, and a mask of them by themselves, or by twice as many."""
    x = Tensor((16, 4), "float32", dynamic_dims=(0, 1))
    mask = Tensor((16, 16 * width), "float32", dynamic_dims=(0, 1))
    make = Maker(x, mask)
    columns = make.add("aten.linear.default", (x, constant(4, 4), None), 16, 4)
    turned = make.add("aten.permute_copy.default", (columns, [1, 0]), 4, 16)
    scores = make.add("aten.mm.default", (columns, turned), 16, 16)
    scores = make.add("aten.cat.default", ([scores] * width, 1), 16, 16 * width)
    graph = make.finish(make.add("aten.add.Tensor", (scores, mask, 1), 16, 16 * width))
    assert [t.dynamic_dims for t in graph.inputs] == [(0,), (0, 1)]
    assert graph.outputs[0].dynamic_dims == (0, 1)
    assert resolve(graph, [(5, 4), (5, 5 * width)]).outputs[0].sizes == (5, 5 * width)
    with pytest.raises(InputError, match="aten.add.Tensor"):
        resolve(graph, [(5, 4), (6, 6 * width)])


@pytest.mark.parametrize("width", [42, 70, 518, 28])
def test_multiples_of_a_number_beside_a_dimension_of_any_size(width):
    """Patches of 14 columns: nothing says that widths are multiples of 14."""
    x = Tensor((8, width), "float32", dynamic_dims=(0, 1))
    make = Maker(x)
    columns = make.symbol("size", x, 1)
    patches = make.symbol("floordiv", columns, 14, bound=width // 14)
    out = make.add("aten.view_copy.default", (x, [-1, patches, 14]), 8, width // 14, 14)
    graph = make.finish(out)
    assert x.dynamic_dims == (0, 1) and out.dynamic_dims == (0, 1)
    lower(largest_and_near(graph)[0], Target())
    assert resolve(graph, [(3, 14)]).outputs[0].sizes == (3, 1, 14)
    with pytest.raises(InputError, match="does not hold"):
        resolve(graph, [(3, 13)])


def test_sizes_that_are_in_no_proportion():
    """A mask of rows and 3 more: no size is found to change, and the file says that some do."""
    x = Tensor((16, 4), "float32", dynamic_dims=(0, 1))
    mask = Tensor((16, 19), "float32", dynamic_dims=(0, 1))
    make = Maker(x, mask)
    more = make.add("aten.cat.default", ([x, constant(3, 4)], 0), 19, 4)
    turned = make.add("aten.permute_copy.default", (more, [1, 0]), 4, 19)
    scores = make.add("aten.mm.default", (x, turned), 16, 19)
    graph = make.finish(make.add("aten.add.Tensor", (scores, mask, 1), 16, 19))
    assert [t.dynamic_dims for t in graph.inputs] == [(0, 1), (0, 1)]
    assert resolve(graph, [(5, 4), (5, 8)]).outputs[0].sizes == (5, 8)
    with pytest.raises(InputError, match="aten.cat.default"):
        resolve(graph, [(5, 3), (5, 8)])


def test_a_division_by_what_the_bounds_make_0():
    """Bounds of two sizes need not belong together: 30 and 16 are those of 2 and 16 rows."""
    x = rows(16)
    make = Maker(x)
    size = make.symbol("size", x, 0)
    rest = make.add("aten.slice_copy.Tensor", (constant(32, 4), 0, size, None, 1), 30, 4)
    less = make.symbol("sub", make.symbol("size", rest, 0), 30)
    part = make.symbol("floordiv", -28, less)
    graph = make.finish(make.add("aten.full.default", ([part, 4], 1.0), 28, 4))
    assert graph.outputs[0].sizes == (2, 4)
    assert resolve(graph, [(3, 4)]).outputs[0].sizes == (28, 4)


def test_an_output_that_changes_less_often_than_the_input():
    x = rows(16)
    make = Maker(x)
    part = make.symbol("floordiv", make.symbol("size", x, 0), 4)
    odd = make.symbol("add", part, 1)
    graph = make.finish(make.add("aten.full.default", ([odd, 4], 1.0), 5, 4),
                        make.add("aten.abs.default", (x,), 16, 4))
    assert graph.outputs[0].dynamic_dims == (0,)


def test_a_value_that_is_the_size_of_an_input():
    """A delegate by itself gets its caller's number of rows as a number."""
    x, count = Tensor((1, 30, 4), "float32", dynamic_dims=(0, 1, 2)), Tensor((1,), "int32")
    make = Maker(x, count)
    read = make.symbol("read", Read(1, 0))
    graph = make.finish(make.add("aten.view_copy.default", (x, [read, 4]), 30, 4))
    assert graph.values == {read.args[0]: 30}
    assert graph.inputs[0].dynamic_dims
    found = resolve(graph, [(1, 7, 4), (1,)], {read.args[0]: 7})
    assert found.outputs[0].sizes == (7, 4)


def read_rows(first: int) -> tuple[Graph, Read]:
    """Rows of a table up to a number, or from one on, that an input holds."""
    x, position = rows(8), Tensor((1,), "int32")
    make = Maker(x, position)
    read = make.symbol("read", Read(1, 0))
    args = (constant(32, 4), 0, read, None, 1) if first else (constant(32, 4), 0, None, read, 1)
    return make.finish(make.add("aten.slice_copy.Tensor", args, 32 - first, 4),
                       make.add("aten.abs.default", (x,), 8, 4)), read.args[0]


@pytest.mark.parametrize(("first", "start", "most"), [(0, 0, 32), (3, 3, 3)])
def test_sizes_that_a_value_decides(first, start, most):
    """At 0 there may be no rows, or more than the program allows: another value does."""
    graph, read = read_rows(first)
    assert graph.values == {read: start}
    assert resolve(graph, [(8, 4), (1,)]) is graph
    found = max(largest_and_near(graph), key=live_bytes)
    assert found.values == {read: most} and found.outputs[0].sizes == (32 - first, 4)
    # Rows end where the table does, and 2 is less than the bound allows.
    if first:
        with pytest.raises(InputError, match="input 1 holds 2: .*would have sizes"):
            resolve(graph, [(8, 4), (1,)], {read: 2})
    else:
        assert resolve(graph, [(8, 4), (1,)], {read: 33}).outputs[0].sizes == (32, 4)


# What needs most


def arena(graph: Graph, like=None) -> int:
    work = lower(graph, Target(), like)
    blocks, _ = activation_blocks(work, default_requirements, 1, True)
    return sum(block.nbytes for block in blocks)


def products(high: int, wide: int, most: int) -> Graph:
    """x times the rest of a table that y leaves, and the rest that x leaves times y."""
    x, y = rows(high), rows(wide)
    make = Maker(x, y)
    outs = []
    for a, b, least in ((x, y, 2), (y, x, 1)):
        size = make.symbol("size", b, 0)
        rest = make.add("aten.slice_copy.Tensor", (constant(most, 4), 0, size, None, 1),
                        most - least, 4)
        turned = make.add("aten.permute_copy.default", (rest, [1, 0]), 4, most - least)
        product = make.add("aten.mm.default", (a, turned), a.sizes[0], most - least)
        outs.append(make.add("aten.sum.dim_IntList", (product, [1]), a.sizes[0]))
    return make.finish(*outs)


@pytest.mark.parametrize(("high", "wide", "most"), [(9, 11, 24), (6, 7, 9), (12, 9, 40)])
def test_the_most_of_all_sizes_is_found(high, wide, most):
    graph = products(high, wide, most)
    base = lower(graph, Target())
    needs = []
    for sizes in itertools.product(range(1, high + 1), range(1, wide + 1)):
        try:
            needs.append(arena(resolve(graph, [(n, 4) for n in sizes]), base))
        except InputError:
            assert sizes[1] == 1  # the bound is that of 2 rows and more
    assert max(needs) > arena(graph)
    assert max(arena(g, base) for g in largest_and_near(graph)) == max(needs)


@pytest.mark.parametrize("scale", [1, 1 << 22])
def test_ranges_too_large_to_try_all(scale, monkeypatch):
    """Few sizes are resolved, and the corner that needs most is among them. No list of all sizes is
    made, which may be as many as a file likes."""
    import vkrt.dynamic.extremes

    graph = products(900 * scale, 1100 * scale, 2400 * scale)
    tried = []
    monkeypatch.setattr(vkrt.dynamic.extremes, "resolve",
                        lambda *args: tried.append(args[1]) or resolve(*args))
    found = max(largest_and_near(graph), key=live_bytes)
    assert len(tried) < 2 * MAX_POINTS
    assert [t.sizes[0] for t in found.inputs] in ([900 * scale, 2], [1, 1100 * scale])


def test_where_all_bounds_are_reached_only_sizes_near_them_are_tried():
    x = rows(16)
    make = Maker(x)
    graph = make.finish(make.add("aten.relu.default", (x,), 16, 4))
    assert [g.inputs[0].sizes for g in largest_and_near(graph)] == [(16, 4), (15, 4)]


def test_bounds_that_are_far_above_what_goes():
    """The exporter allows sizes of an input at which a tensor behind it would have more than the
    file says: the largest that go are found."""
    x = rows(160)
    make = Maker(x)
    parts = make.symbol("floordiv", make.symbol("size", x, 0), 32)
    joined = make.add("aten.view_copy.default", (x, [parts, 128]), 2, 128)
    graph = make.finish(make.add("aten.relu.default", (joined,), 2, 128))
    assert [tensor.sizes for tensor in (*graph.inputs, *graph.outputs)] == [(64, 4), (2, 128)]
    assert resolve(graph, [(32, 4)]).outputs[0].sizes == (1, 128)
    with pytest.raises(InputError, match="allows no more than"):
        resolve(graph, [(96, 4)])
