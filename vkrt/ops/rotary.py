"""Rotary position embeddings: queries and keys turned by angles that follow from their positions.

The tables of cosines and sines are read as they lie in the file, even if they have more positions
than a run uses.
"""

from __future__ import annotations

import math

from vkrt.ops.caches import row_texels, writers
from vkrt.ops.dtypes import ONE_FLOAT
from vkrt.ops.operator import RuntimeScalarRule
from vkrt.ops.positions import need_position, position, write_rows
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail, need_rank, need_sizes
from vkrt.ops.strided_copy import variant
from vkrt.shader import opcode
from vkrt.work.tensor import Operand, Tensor, row_major


def _turn(cx, outs: tuple[Tensor, ...], xs: tuple[Tensor, ...], how: str,
          tables: tuple[Operand, Operand], turned: int, first_row: int = 0,
          heads_first: bool = False) -> None:
    """Dispatches rotary.comp for x [.., positions, heads, D] (a 3-d x has no heads), or
    rotary_two.comp for two tensors that differ in their heads.

    Args:
        how: an opcode of rotary.glsl.
        tables: of cosines and of sines, [rows, ..]; a single table of both stands here twice.
        turned: elements of a head that are turned.
        first_row: the row of the tables for the first position; may be a `RuntimeScalar`.
        heads_first: x is [.., heads, positions, D].
    """
    if len(xs) > 1 and any(table.texels > cx.target.max_texels for table in tables):
        for out, x in zip(outs, xs, strict=True):
            _turn(cx, (out,), (x,), how, tables, turned, first_row, heads_first)
        return
    sources = [cx.read(x, row_major(x.rank)) for x in xs]
    # No tensor's result may go over memory that the kernel reads for another one.
    apart = len({source.storage.id for source in sources}) == len(sources)
    results = [_result(cx, out, source, how, apart)
               for out, source in zip(outs, sources, strict=True)]
    where, params = _params(cx, xs[0], results[0], how, tables, turned, first_row, heads_first)
    if len(xs) > 1:
        params += [*results[1].grid[:2], _heads(xs[1], heads_first)]
    cx.dispatch("rotary" if len(xs) == 1 else "rotary_two", params, results,
                [*sources, *tables, where], sum(result.texels for result in results), loops=4)


def _result(cx, out: Tensor, source: Operand, how: str, apart: bool) -> Operand:
    """The operand of turned elements. It does not lie over the source for "HALVES", of which an
    invocation also reads what others write."""
    return cx.write(out, source.order, over=(source,) if apart and how != "HALVES" else ())


def _heads(x: Tensor, heads_first: bool) -> int:
    """Rows of x from one position to the next."""
    return x.sizes[2] if x.rank == 4 and not heads_first else 1


def _params(cx, x: Tensor, result: Operand, how: str, tables: tuple[Operand, Operand], turned: int,
            first_row: int, heads_first: bool) -> tuple[Operand, list[int]]:
    """The operand and the parameters of rotary.glsl for the first of the tensors."""
    rows, texels = tables[0].sizes[0], tables[0].grid[2]
    where, numbers = position(cx, first_row)
    return where, [*result.grid, result.packed, opcode("rotary_turn", how), _heads(x, heads_first),
                   x.sizes[2 if heads_first else 1], turned, rows, texels, *numbers]


def turn_into(cx, out: Tensor, q: Tensor, k: Tensor, angles: tuple[Tensor, Tensor], how: str,
              first_row: int, caches: tuple[Operand, Operand], values: Tensor, start: int) -> None:
    """Turns queries and keys, and writes the turned keys and the values as new rows of caches.

    Args:
        out: the turned queries.
        q, k: [batch, S, heads, D].
        angles: tables of cosines and of sines, of two dimensions.
        how: "PAIRS" or "HALVES".
        first_row: the row of the tables for the first position.
        caches: [batch, rows, heads, D], of the keys and of the values, of floats or in 8 bits.
        start: the row of the caches where the first new row goes.
    """
    cosines, sines = angles
    tables = cx.flat(cosines), cx.flat(sines)
    turned = q.sizes[3] if how == "PAIRS" else cosines.sizes[-1]
    sources = [cx.read(x, row_major(x.rank)) for x in (q, k, values)]
    storages = {operand.storage.id for operand in (*caches, *sources)}
    texels = (operand.texels for operand in (*tables, *sources[1:]))
    if len(storages) < len(caches) + len(sources) or max(texels) > cx.target.max_texels:
        keys = Tensor(k.sizes, k.dtype)
        _turn(cx, (out, keys), (q, k), how, tables, turned, first_row)
        write_rows(cx, caches, (keys, values), start)
        return
    result = _result(cx, out, sources[0], how, True)
    where, params = _params(cx, q, result, how, tables, turned, first_row, False)
    place, numbers = position(cx, start)
    params += [*sources[1].grid[:2], k.sizes[2], row_texels(caches[0]), caches[0].sizes[1],
               *numbers, caches[0].sizes[0] - 1]
    invocations, loops = writers(sources[1], caches[0])
    cx.dispatch("rotary_into", params, [result, *caches], [*sources, *tables, where, place],
                result.texels + 2 * invocations, loops=4 + 4 * loops,
                dtype=variant(q.dtype, caches[0].dtype))


def turned_sizes(q, k, cosines, sines, how, first_row):
    """Sizes of queries and keys that are turned in one of the ways of `turn_into`."""
    if how not in ("PAIRS", "HALVES"):
        fail("how", f"expected PAIRS or HALVES, got {how!r}")
    need_rank(cosines, 2, "freqs_cos")
    if how == "PAIRS":
        return _pairs_sizes(q, k, cosines, sines)
    return _halves_sizes(q, k, cosines, sines, first_row)


def _need_heads(q, k):
    """Queries [B, S, H, D] and keys [B, S, H', D]."""
    need_rank(q, 4, "xq")
    need_rank(k, 4, "xk")
    if q[:2] != k[:2] or q[3] != k[3]:
        fail("xk", f"expected sizes [{q[0]}, {q[1]}, .., {q[3]}] as of the queries, got {list(k)}")


def _need_even(size, name):
    if size % 2:
        fail(name, f"expected an even size of the last dimension, got {size}")


def _pairs_sizes(q, k, cosines, sines):
    _need_heads(q, k)
    _need_even(q[3], "xq")
    need_sizes(cosines, (q[1], q[3] // 2), "freqs_cos")
    need_sizes(sines, (q[1], q[3] // 2), "freqs_sin")
    return q, k


@op("et_vk.apply_rotary_emb.default", "xq:T xk:T freqs_cos:T freqs_sin:T", sizes=_pairs_sizes,
    dtypes=ONE_FLOAT)
def _pairs(cx, node, q, k, cosines, sines):
    """Neighbouring elements; tables [S, D / 2]."""
    tables = cx.flat(cosines), cx.flat(sines)
    _turn(cx, node.outs, (q, k), "PAIRS", tables, q.sizes[3])


def _halves_sizes(q, k, cosines, sines, start):
    if len(cosines) == 3:
        return _heads_first_sizes(q, k, cosines, sines, start)
    _need_heads(q, k)
    need_rank(cosines, 2, "freqs_cos")
    need_sizes(sines, cosines, "freqs_sin")
    rows, turned = cosines
    _need_even(turned, "freqs_cos")
    if turned > q[3]:
        fail("freqs_cos", f"expected at most {q[3]} columns for sizes {list(q)}, got {turned}")
    if rows < q[1]:
        fail("freqs_cos", f"expected at least {q[1]} rows, got {rows}")
    need_position(start, rows - q[1], "start_pos")
    return q, k


def _heads_first_sizes(q, k, cosines, sines, start):
    """Queries [B, H, S, D], keys [B, H', S, D], tables [1, S, R]: what the exporter finds in models
    that put the heads in front, although the operator is made for the other order."""
    need_rank(q, 4, "xq")
    need_rank(k, 4, "xk")
    if (q[0], *q[2:]) != (k[0], *k[2:]):
        fail("xk", f"expected sizes [{q[0]}, .., {q[2]}, {q[3]}] as of the queries, got {list(k)}")
    need_sizes(cosines[:2], (1, q[2]), "freqs_cos")
    need_sizes(sines, cosines, "freqs_sin")
    _need_even(cosines[2], "freqs_cos")
    if cosines[2] > q[3]:
        fail("freqs_cos", f"expected at most {q[3]} columns for sizes {list(q)}, got {cosines[2]}")
    need_position(start, 0, "start_pos")
    return q, k


@op("et_vk.apply_rotary_emb_hf.default", "xq:T xk:T freqs_cos:T freqs_sin:T start_pos:i",
    sizes=_halves_sizes, dtypes=ONE_FLOAT,
    runtime_scalar=RuntimeScalarRule(("start_pos",), lambda q, _k, cosines, *_others:
                  0 if cosines.rank == 3 else cosines.sizes[0] - q.sizes[1]))
def _halves(cx, node, q, k, cosines, sines, start):
    """The two halves of the first R elements; tables [rows, R] from row `start_pos` on."""
    rows, turned = cosines.sizes[-2:]
    tables = cx.flat(cosines, (rows, turned)), cx.flat(sines, (rows, turned))
    _turn(cx, node.outs, (q, k), "HALVES", tables, turned, start, heads_first=cosines.rank == 3)


def _complex_sizes(x, angles):
    need_rank(x, 3, "x")
    _need_even(x[2], "x")
    if math.prod(angles) != x[1] * x[2]:
        fail("freqs_cis", f"expected {x[1] * x[2]} elements for sizes {list(x)}, got sizes "
             f"{list(angles)}")
    return (x,)


@op("et_vk.apply_rotary_emb_interleaved.default", "x:T freqs_cis:T", sizes=_complex_sizes,
    dtypes=ONE_FLOAT)
def _complex(cx, node, x, angles):
    """Neighbouring elements of x [B, N, C]; N * C / 2 pairs of a cosine and a sine."""
    table = cx.flat(angles, x.sizes[1:])
    _turn(cx, node.outs, (x,), "COMPLEX", (table, table), x.sizes[2])
