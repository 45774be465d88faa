"""4-bit weights are read as they lie in the file, and are one weight whoever reads them."""

from dataclasses import replace

import numpy as np
import pytest
from graph_maker import constant, value
from harness import Sample, make_case, merged
from samples.linear_q4 import SAMPLES, embedding, grouped, grouped_linear
from small_graphs import families_of
from support import open_method

from vkrt.compiler import compiler
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def target(storage):
    return Target(storage=storage, max_texels=1 << 26, max_image_extent=16384)


def test_nothing_of_them_is_copied(storage):
    for sample in SAMPLES:
        work = lower(make_case(sample).graph, target(storage))
        assert {weight.layout for weight in work.weight_table} == {"file"}, sample


def _of_linear(sizes, columns, group) -> Sample:
    return Sample("et_vk.linear_q4gsw.default", grouped(sizes, columns, group), grouped_linear,
                  constants=(1, 2))


def _model(key=None):
    """An embedding and an output layer with the same bytes."""
    _, weight, scales, group, _ = grouped((1, 64), 12, 32)
    table = Sample("et_vk.embedding_q4gsw.default",
                   [weight, np.ascontiguousarray(scales.T), group, np.array([3], np.int32), True],
                   embedding, dtype="float32", constants=(0, 1))
    head = _of_linear((1, 64), 12, 32)
    graph, *_ = merged([make_case(table), make_case(head)])
    for node, place in zip(graph.nodes, (0, 1)):
        tensor = node.args[place]
        tensor.constant = replace(tensor.constant, key=key)
    return graph


def test_the_embedding_and_the_output_layer_share_their_weight(storage):
    work = lower(_model("the key of both"), target(storage))
    table, head = (step for step in work.steps if step.shader.startswith(("embed", "linear")))
    assert table.reads[0].storage is head.reads[1].storage
    assert table.reads[0].nbytes == head.reads[1].nbytes == 12 * 32
    assert (table.reads[0].dtype, head.reads[1].dtype) == ("uint8", "int32")
    assert len([w for w in work.weight_table if w.nbytes == 12 * 32]) == 1
    other = lower(_model(), target(storage))
    assert len([w for w in other.weight_table if w.nbytes == 12 * 32]) == 2


@pytest.mark.parametrize(("sizes", "group", "shader"), [
    ((1, 64), 32, "linear_q4_gemv"), ((1, 1, 64), 64, "linear_q4_gemv"),
    ((2, 64), 32, "linear_q4_2x4"), ((3, 64), 32, "linear_q4_4x8"),
    ((300, 64), 32, "linear_q4_8x8"),
    ((1, 48), 16, "linear_q4_any"), ((5, 48), 48, "linear_q4_any"),
])
def test_rows_and_groups_choose_the_kernel(sizes, group, shader):
    sample = _of_linear(sizes, 64, group)
    assert families_of(lower(make_case(sample).graph, Target()))[-1] == shader


def _layer(**changes):
    sizes = {"x": (2, 64), "weight": (8, 32), "scales": (2, 8), "group": 32, "bias": None,
             "out": (2, 8), **changes}
    x, out = value(*sizes["x"]), Tensor(sizes["out"], "float32")
    weight = replace(constant(256, dtype="uint8"), sizes=sizes["weight"])
    scales = replace(constant(16, offset=256), sizes=sizes["scales"])
    bias = sizes["bias"] and replace(constant(16), sizes=sizes["bias"])
    node = Node("et_vk.linear_q4gsw.default", (x, weight, scales, sizes["group"], bias), (out,))
    return Graph("m", [x], [out], [node]).finish(), node


@pytest.mark.parametrize(("depth", "columns"), [(64, 100), (96, 1), (1024, 97)])
def test_a_walk_ahead_changes_no_bit(depth, columns, device, monkeypatch):
    sample = _of_linear((1, depth), columns, 32)
    case, target_of = make_case(sample), compiler.target_of
    results = []
    for ahead in (False, True):
        def with_it(*args, ahead=ahead, **options):
            found = target_of(*args, **options)
            return replace(found, tuning=replace(found.tuning, reads_ahead=ahead))

        monkeypatch.setattr(compiler, "target_of", with_it)
        with open_method(case.graph, case.data, device) as method:
            step, = (s for s in method.work.steps if s.shader.startswith("linear_q4_gemv"))
            assert step.params[8] == ahead  # of q4_row.glsl
            results += method.execute(case.inputs)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(("changes", "argument"), [
    ({"group": 48}, "group_size"), ({"group": 0}, "group_size"), ({"group": -32}, "group_size"),
    ({"weight": (8, 33)}, "weights"), ({"weight": (256,)}, "weights"), ({"x": ()}, "self"),
    ({"scales": (1, 8)}, "weight_scales"), ({"scales": (2, 4)}, "weight_scales"),
    ({"scales": (16,)}, "weight_scales"), ({"bias": (12,)}, "bias"), ({"bias": (8, 1)}, "bias"),
])
def test_sizes_that_contradict_each_other_are_refused(changes, argument):
    with pytest.raises(FormatError, match=f"argument '{argument}'"):
        lower(_layer(**changes)[0], Target())


def test_a_computed_weight_is_refused():
    graph, node = _layer()
    weight = node.args[1]
    weight.constant = None
    graph = Graph("m", [*graph.inputs, weight], graph.outputs, graph.nodes).finish()
    with pytest.raises(UnsupportedError, match="has to be a constant"):
        lower(graph, Target())
