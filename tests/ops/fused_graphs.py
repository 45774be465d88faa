"""Graphs of nodes that become one kernel: layers of one row, and keys on their way into a cache."""

from collections.abc import Iterator

import numpy as np
from graph_maker import Constants, Nodes, new_node, value
from harness import normal
from small_graphs import layer

from vkrt.graph.graph import Graph, Node
from vkrt.work.tensor import Tensor

# Of layers with 4-bit weights
COLUMNS, DEPTH = 19, 160
# Heads, heads of the cache, elements a head, rows of the cache
HEADS = 6, 2, 12, 9
PAIRS, HALVES = "et_vk.apply_rotary_emb.default", "et_vk.apply_rotary_emb_hf.default"


def graph_of(x: Tensor, nodes: list[Node], *outs: Tensor) -> Graph:
    return Graph("layers", [x], list(outs), nodes).finish()


def several(kind: str, count: int, dtype: str = "float32", bias: bool = False,
            rows: int = 1) -> tuple[Graph, Constants]:
    """Layers of -x, with what happens to their results between them."""
    constants, x, nodes, outs = Constants(), value(rows, DEPTH, dtype=dtype), Nodes(), []
    source = nodes.add("aten.neg.default", x)
    for number in range(count):
        made = nodes.put(layer(kind, source, COLUMNS, constants, bias, 10 * number,
                               32 if kind == "groups" else None))
        out = nodes.add("aten.exp.default", made)
        outs.append(made if number % 2 else out)
    return graph_of(x, nodes, *outs), constants


def gated(swapped: bool = False, views: bool = False, dtype: str = "float32", rows: int = 1,
          bias: bool = False, kind: str = "groups") -> tuple[list[Node], Tensor, Constants]:
    """silu(a layer of -x) * another one, with an operator between that may not take its memory.
    With views, as the exporter leaves them, or with the gate as the second factor."""
    constants, x, nodes = Constants(), value(rows, DEPTH, dtype=dtype), Nodes()

    def made(seed: int) -> Tensor:
        out = nodes.put(layer(kind, source, COLUMNS, constants, bias, seed, 32))
        return nodes.add("aten.view_copy.default", out, list(out.sizes)) if views else out

    source = nodes.add("aten.neg.default", x)
    first = made(1)
    mul = nodes.add("aten.mul.Tensor", first, nodes.add("aten.sigmoid.default", first))
    factors = mul, made(20)
    last = nodes.add("aten.tanh.default", source)
    out = nodes.add("aten.mul.Tensor", *(factors[::-1] if swapped else factors))
    nodes.add("aten.add.Tensor", out, out, 1)
    return nodes, last, constants


def gated_graph(nodes: list[Node], last: Tensor, _constants: Constants, *more: Tensor) -> Graph:
    return graph_of(nodes[0].args[0], nodes, nodes[-1].outs[0], last, *more)


def normed(columns=(COLUMNS, COLUMNS, 8), dtype: str = "float32", group: int = 32,
           kind: str = "groups", rows: int = 1) -> tuple[list[Node], Constants]:
    """Layers of the norm of -x, and an operator between that may not take the memory of -x."""
    constants, x, nodes = Constants(), value(rows, DEPTH, dtype=dtype), Nodes()
    source = nodes.add("aten.neg.default", x)
    weight = constants.add(normal(DEPTH, seed=8).astype(dtype))
    norm = nodes.add("et_vk.rms_norm.default", source, weight, 1e-5)
    nodes.add("aten.tanh.default", source)
    for number, size in enumerate(columns):
        nodes.put(layer(kind, norm, size, constants, seed=10 * number, group=group))
    return nodes, constants


def normed_graph(nodes: list[Node], *more: Tensor) -> Graph:
    return graph_of(nodes[0].args[0], nodes, *(n.outs[0] for n in nodes[2:]), *more)


def quantized(x: Tensor, *others: Tensor, summed: bool = False, group: int = 32,
              normed: bool = False) -> tuple[Graph, bytes]:
    """Layers with 4-bit weights that quantize their input, one of each tensor, or of their norms.
    The last one's result may be added to a part of x."""
    random, constants = np.random.default_rng(5), Constants()
    constant, depth = constants.add, x.sizes[-1]
    nodes, norms, outs = Nodes(), {}, []
    for source in dict.fromkeys((x, *others) if normed else ()):
        weight = constant(normal(depth, seed=8).astype(x.dtype))
        norms[source] = nodes.add("et_vk.rms_norm.default", source, weight, 1e-5)
    for source in (norms.get(tensor, tensor) for tensor in (x, *others)):
        nodes.add("torchao.choose_qparams_affine.default", source, "ASYMMETRIC",
                  [1] * (x.rank - 1) + [depth], None, -128, 127, dtypes=[x.dtype, "int8"])
        outs.append(nodes.add(
            "et_vk.linear_dq8ca_q4gsw.default", source, *nodes[-1].outs,
            constant(random.integers(0, 256, (8, -(-depth // 8) * 4), np.uint8)),
            constant(np.zeros((depth // group, 8), np.int32)),
            constant(random.random((depth // group, 8), np.float32).astype(x.dtype)), group, None))
    if summed:
        part = nodes.add("aten.slice_copy.Tensor", x, x.rank - 1, 0, 8, 1)
        outs[-1] = nodes.add("aten.add.Tensor", part, outs[-1], 1)
    inputs = list(dict.fromkeys((x, *others)))
    return Graph("layers", inputs, outs, nodes).finish(), bytes(constants.data)


def attention(op: str, count: int, start: int, dtype: str = "float32", turned: int = HEADS[2],
              lifted: bool = False, sizes: tuple[int, ...] = HEADS, batch: int = 1,
              masked: bool = False) -> tuple[list[Tensor], list[Node], Constants]:
    """Inputs (queries, keys, values and caches), and the nodes that turn and attend: `count` new
    rows from `start` on, of whose heads `turned` elements are turned. With `lifted` tables of three
    dimensions heads come before positions; a mask is not causal."""
    heads, kv_heads, size, rows = sizes
    constants = Constants()
    order = (lambda h: (batch, h, count, size)) if lifted else (lambda h: (batch, count, h, size))
    q, k = (Tensor(order(h), dtype) for h in (heads, kv_heads))
    caches = [Tensor((batch, rows, kv_heads, size), dtype) for _ in range(2)]
    value = Tensor((batch, count, kv_heads, size), dtype)
    angles = normal(rows if op == HALVES else count, turned if op == HALVES else turned // 2)
    tables = [constants.add(wave(angles[None, :count] if lifted else angles).astype(dtype))
              for wave in (np.cos, np.sin)]
    mask = constants.add(normal(batch, 1, count, rows, seed=2).astype(dtype)) if masked else None
    nodes = [new_node(op, q, k, *tables, *((0 if lifted else start,) if op == HALVES else ()))]
    nodes.append(new_node("sdpa_with_kv_cache.default", *nodes[0].outs, value, *caches, start,
                          count, mask, 0.0, not masked, None))
    return [q, k, value, *caches], nodes, constants


def residual(kind: str, rows: int, dtype: str = "float32") -> Graph:
    """A layer of -x, added to exp(-x) of other sizes, of which nothing else is read."""
    x, nodes = value(rows, DEPTH, dtype=dtype), Nodes()
    source = nodes.add("aten.neg.default", x)
    part = nodes.add("aten.slice_copy.Tensor", source, 1, 0, COLUMNS, 1)
    other = nodes.add("aten.exp.default", part)
    made = nodes.put(layer(kind, source, COLUMNS, Constants()))
    return graph_of(x, nodes, nodes.add("aten.add.Tensor", other, made, 1))


def attention_graph(inputs: list[Tensor], nodes: list[Node], *more: Tensor) -> Graph:
    return Graph("attention", inputs, [*nodes[-1].outs, *more], nodes).finish()


def graphs() -> Iterator[tuple[str, Graph]]:
    """Some that reach every such kernel, with names."""
    for dtype in ("float32", "float16"):
        for count in (2, 3):
            yield f"{count} layers, {dtype}", several("groups", count, dtype, bias=True)[0]
        yield f"gated, {dtype}", gated_graph(*gated(dtype=dtype))
        yield f"with a norm, {dtype}", normed_graph(normed(dtype=dtype)[0])
        x = value(1, DEPTH, dtype=dtype)
        yield f"quantized, {dtype}", quantized(x, x)[0]
        yield f"quantized, with a norm, {dtype}", quantized(x, x, normed=True)[0]
        yield f"quantized, padded, {dtype}", quantized(value(1, 6, dtype=dtype), group=6)[0]
        inputs, nodes, _ = attention(PAIRS, 2, 1, dtype)
        for kind in ("float", "groups", "channels"):
            for rows in (1, 3, 70):
                yield f"{rows} rows of {kind}, added, {dtype}", residual(kind, rows, dtype)
        yield f"keys, {dtype}", attention_graph(inputs, nodes)
