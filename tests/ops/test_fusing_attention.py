"""Attention that exporters took apart: one node where its scores have many bytes."""

import math

import numpy as np
import pytest
from graph_maker import Constants, Nodes, new_node
from harness import normal
from small_graphs import check_lowered_alike, families_of, rewritten
from support import execute
from test_fusing_softmax import guarded

from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.ops import score_blocks
from vkrt.plan.scratch import alive
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

ATTENTION = "vkrt.attention.default"
# Batch, heads, rows and elements of a head
SIZES = 1, 3, 11, 8
# How the scores are scaled
SCALES = "both", "product", "quotient", "none"


@pytest.fixture
def few_bytes(monkeypatch):
    """Scores of small graphs have many bytes."""
    monkeypatch.setattr(score_blocks, "SCORE_BYTES", 500)
    monkeypatch.setattr(score_blocks, "ROWS", 0)


def attention(sizes=SIZES, mask: tuple[int, ...] | None = None, scale: str = "both",
              turned: bool = True, change: str = "", dtype: str = "float32") -> Graph:
    """Attention in pieces, as exporters and models write it.

    Args:
        mask: its sizes; the softmax is guarded then.
        scale: one of `SCALES`.
        turned: whether queries, keys and values come, and results go, with heads behind rows.
        change: what is different from attention.
    """
    batch, heads, rows, size = sizes
    nodes = Nodes()

    def then(name: str, *args) -> Tensor:
        return nodes.add(f"aten.{name}", *args)

    def flat(x: Tensor) -> Tensor:
        x = then("expand_copy.default", x, list(x.sizes), False)
        return then("view_copy.default", x, [batch * heads, *x.sizes[2:]])

    four = (batch, rows, heads, size) if turned else (batch, heads, rows, size)
    inputs = [Tensor(four, dtype, name=name) for name in "qkv"]
    q, k, v = inputs
    if turned:
        q, k, v = (then("permute_copy.default", x, [0, 2, 1, 3]) for x in inputs)
    number = size ** -0.25
    if scale == "both":
        q = then("mul.Scalar", q, number)
    k = then("permute_copy.default", k, [0, 1, 3, 2])
    if scale == "both":
        k = then("mul.Scalar", k, number)
    scores = then("view_copy.default", then("bmm.default", flat(q), flat(k)),
                  [batch, heads, rows, rows])
    if scale in ("product", "quotient") and change != "late scale":
        scores = (then("mul.Scalar", scores, number) if scale == "product" else
                  then("div.Scalar", scores, 1 / number))
    more: list[Tensor] = []
    for _ in range(2 if change == "masks" else 1):
        if mask is not None:
            inputs.append(Tensor(mask, dtype, name="mask"))
            added = (inputs[-1], scores) if change == "mask first" else (scores, inputs[-1])
            scores = then("add.Tensor", *added, 2 if change == "alpha" else 1)
    if change == "late scale":
        scores = then("mul.Scalar", scores, number)
    if change == "scores":
        more = [scores]
    dim = -2 if change == "dim" else -1
    if mask is None:
        weights = then("_softmax.default", scores, dim, False)
    else:
        nodes += guarded(scores, dim)
        (weights,) = nodes[-1].outs
    if change == "weights":
        weights = then("mul.Scalar", weights, 1.25)
    result = then("view_copy.default", then("bmm.default", flat(weights), flat(v)),
                  [batch, heads, rows, size])
    if turned:
        result = then("permute_copy.default", result, [0, 2, 1, 3])
    return Graph("attention", inputs, [result, *more], nodes).finish()


def run(graph: Graph, storage: str, device, data: bytes = b"", **options) -> np.ndarray:
    """What the graph gives for some numbers; of a mask some are -inf, and a whole row is."""
    arrays = [normal(*x.sizes, seed=seed).astype(x.dtype) for seed, x in enumerate(graph.inputs)]
    for array, x in zip(arrays, graph.inputs, strict=True):
        if x.name == "mask":
            array[array > 0.5] = -np.inf
            array[..., :1, :] = -np.inf
    return execute(graph, data, arrays, device, storage=storage, **options)[0]


def fused(graph: Graph, **target) -> Node | None:
    """The attention that passes make."""
    return next((node for node in rewritten(graph, **target).nodes if node.op == ATTENTION), None)


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mask", [None, (11, 11), (1, 1, 11, 11), (1, 3, 11, 1)])
def test_attention_is_one_node(mask, scale, storage, device):
    """With the numbers of its pieces."""
    graph = attention(mask=mask, scale=scale)
    node = fused(graph)
    assert node is not None
    assert math.isclose(node.args[4], {"both": 8 ** -0.5, "none": 1}.get(scale, 8 ** -0.25))
    apart = run(graph, storage, device, fusions="no-fuse_attention")
    np.testing.assert_allclose(run(graph, storage, device), apart, rtol=1e-5, atol=1e-6)
    if mask is not None and mask[-1] == 11:
        assert not apart[:, 0].any()


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("sizes", [(2, 3, 11, 8), (1, 2, 13, 6), (3, 2, 20, 4), (1, 1, 33, 16)])
@pytest.mark.parametrize("turned", [True, False])
def test_heads_and_rows_of_all_sizes(sizes, turned, dtype, device):
    graph = attention(sizes, turned=turned, dtype=dtype, mask=(sizes[0], 1, 1, sizes[2]))
    assert fused(graph) is not None
    apart = run(graph, "texel", device, fusions="no-fuse_attention")
    error = 5e-3 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(run(graph, "texel", device), apart, rtol=error, atol=error)


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("change", ["", "mask first", "scores", "masks", "alpha", "late scale",
                                    "dim", "weights"])
def test_near_misses_stay(change):
    graph = attention(mask=(11, 11), scale="product", change=change)
    assert (fused(graph) is not None) == (change in ("", "mask first"))


def test_few_scores_stay_whole():
    graph = attention()
    assert fused(graph) is None
    assert fused(attention((1, 3, 400, 8))) is not None
    assert fused(attention((1, 3, 400, 8)), storage="texture3d") is None


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("between", [False, True])
def test_weights_are_read_in_their_order(between):
    """A mask that is a constant stays where it is read before the weights of another node."""
    constants = Constants()
    graph = attention(mask=(11, 11))
    mask = graph.inputs.pop()
    added = constants.add(normal(11, 11))
    nodes = [Node(node.op, tuple(added if arg is mask else arg for arg in node.args), node.outs)
             for node in graph.nodes]
    if between:
        place = next(index for index, node in enumerate(nodes) if node.name == "add") + 1
        number = constants.add(normal(8))
        nodes.insert(place, new_node("aten.mul.Tensor", graph.inputs[2], number))
        graph.outputs += nodes[place].outs
    graph = Graph("attention", graph.inputs, graph.outputs, nodes).finish()
    assert (fused(graph) is None) == between


@pytest.mark.parametrize("turned", [True, False])
def test_long_attention_takes_little_memory(turned):
    """Queries, keys, values and the result, which takes the place of the queries."""
    heads, rows, size = 8, 1024, 64
    graph = attention((1, heads, rows, size), turned=turned)
    work = lower(graph, Target())
    assert max(alive(work)) <= 3 * 4 * heads * rows * size + (1 << 20) + 4096
    # What lies where the host has written is copied for it to read.
    assert {name.partition("_")[0] for name in families_of(work)[:-1]} == {"matmul", "softmax"}


@pytest.mark.usefixtures("few_bytes")
def test_other_sizes_are_lowered_alike():
    first, second = (attention((1, 2, rows, 8)) for rows in (4, 20))
    assert fused(first) is None and fused(second) is not None
    check_lowered_alike(first, second)


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("dtype", ["bool", "int32", "float16"])
def test_a_mask_of_another_dtype_is_added_to_the_scores(dtype, storage, device):
    """Which attention does not take: its pieces stay."""
    graph = attention(mask=(11, 11))
    mask = graph.inputs[-1]
    mask.dtype = mask.host_dtype = dtype
    assert fused(graph) is None
    arrays = [normal(*x.sizes, seed=seed) for seed, x in enumerate(graph.inputs)]
    arrays[-1] = np.asarray(arrays[-1] * 2).astype(dtype)
    found, plain = (execute(graph, b"", arrays, device, storage=storage, fusions=fusions)[0]
                    for fusions in ("on", "off"))
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("number", [0.25, 1e-39, 1e39])
def test_scales_that_float32_does_not_have(number):
    """With such a number the pieces stay."""
    graph = attention(scale="product")
    for node in graph.nodes:
        if node.op == "aten.mul.Scalar":
            node.args = (node.args[0], number)
    assert (fused(graph) is not None) == (number == 0.25)
