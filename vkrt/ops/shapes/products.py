"""Shape rules of matrix products and of attention."""

from __future__ import annotations

from vkrt.ops.shapes.rules import (
    broadcast,
    fail,
    need_broadcast,
    need_rank,
    need_sizes,
    rule,
    unsupported,
)


def product(x, y, name="mat2"):
    """Sizes of x @ y for matrices."""
    if x[-1] != y[-2]:
        fail(name, f"expected {x[-1]} rows for sizes {list(x)}, got sizes {list(y)}")
    return x[-2], y[-1]


@rule("self:T mat2:T", "aten.mm.default")
def mm(x, y):
    need_rank(x, 2, "self")
    need_rank(y, 2, "mat2")
    return (product(x, y),)


@rule("self:T mat2:T", "aten.bmm.default")
def bmm(x, y):
    need_rank(x, 3, "self")
    need_rank(y, 3, "mat2")
    if x[0] != y[0]:
        fail("mat2", f"expected a batch of {x[0]}, got sizes {list(y)}")
    return ((x[0], *product(x, y)),)


@rule("self:T mat1:T mat2:T beta:n alpha:n", "aten.addmm.default")
def addmm(bias, x, y, *_factors):
    need_rank(x, 2, "mat1")
    need_rank(y, 2, "mat2")
    sizes = product(x, y)
    need_broadcast(bias, sizes, "self")
    return (sizes,)


@rule("self:T other:T", "aten.matmul.default")
def matmul(x, y):
    if not x or not y:
        fail("other" if x else "self", "expected at least rank 1")
    left = x if len(x) > 1 else (1, *x)
    right = y if len(y) > 1 else (*y, 1)
    rows, columns = product(left, right, "other")
    sizes = broadcast(left[:-2], right[:-2])
    return ((*sizes, *(rows,) * (len(x) > 1), *(columns,) * (len(y) > 1)),)


@rule("self:T weight:T bias:T?", "aten.linear.default")
def linear(x, weight, bias):
    if len(weight) == 1:
        unsupported("weight", f"a vector (sizes {list(weight)}); vkrt takes matrices")
    need_rank(weight, 2, "weight")
    if not x or x[-1] != weight[1]:
        fail("weight", f"expected sizes [N, K] for an input [.., K], got {list(weight)} for "
             f"{list(x)}")
    need_sizes(bias, weight[:1], "bias")
    return ((*x[:-1], weight[0]),)


# Attention


def need_head(x, name):
    """Refuses what is not [batch, sequence, heads, size of a head]."""
    need_rank(x, 4, name)
    if 0 in x:
        fail(name, f"expected elements, got sizes {list(x)}")


def need_groups(query_heads, heads, name):
    """Refuses a number of key heads that does not divide that of the query."""
    if query_heads % heads:
        fail(name, f"its {heads} heads do not divide the {query_heads} of the query")


@rule("q:T k:T cos:T sin:T", "et_vk.apply_rotary_emb.default")
def rotary(q, k, cos, sin):
    _rotated(q, k)
    if q[3] % 2:
        fail("q", f"expected heads of an even size, got sizes {list(q)}")
    for name, table in (("cos", cos), ("sin", sin)):
        need_sizes(table, (q[1], q[3] // 2), name)
    return q, k


@rule("q:T k:T cos:T sin:T start_pos:i", "et_vk.apply_rotary_emb_hf.default")
def rotary_hf(q, k, cos, sin, start):
    _rotated(q, k)
    need_rank(cos, 2, "cos")
    need_sizes(sin, cos, "sin")
    if cos[1] % 2 or cos[1] > q[3]:
        fail("cos", f"expected rows of an even size up to {q[3]}, got sizes {list(cos)}")
    if not 0 <= start <= cos[0] - q[1]:
        fail("start_pos", f"positions {start} to {start + q[1] - 1} of {cos[0]}")
    return q, k


def _rotated(q, k):
    need_head(q, "q")
    need_head(k, "k")
    if k[:2] != q[:2] or k[3] != q[3]:
        fail("k", f"expected sizes that differ from {list(q)} in the heads only, got {list(k)}")


@rule("x:T freqs:T", "et_vk.apply_rotary_emb_interleaved.default")
def rotary_interleaved(x, freqs):
    need_rank(x, 3, "x")
    numel = 1
    for size in freqs:
        numel *= size
    if x[2] % 2 or numel != x[1] * x[2]:
        fail("freqs", f"expected {x[1] * x[2]} elements for sizes {list(x)}, got {list(freqs)}")
    return (x,)


@rule("q:T k:T v:T k_cache:T v_cache:T start_pos:i seq_len:i mask:- dropout:f causal:b scale:f?",
      "sdpa_with_kv_cache.default")
def sdpa_with_kv_cache(q, k, v, k_cache, v_cache, start, _length, *_numbers):
    need_head(q, "q")
    need_head(k, "k")
    need_sizes(v, k, "v")
    need_sizes(k, (*q[:2], k[2], q[3]), "k")
    need_groups(q[2], k[2], "k")
    need_head(k_cache, "k_cache")
    need_sizes(k_cache, (q[0], k_cache[1], *k[2:]), "k_cache")
    need_sizes(v_cache, k_cache, "v_cache")
    if not 0 <= start <= k_cache[1] - q[1]:
        fail("start_pos", f"positions {start} to {start + q[1] - 1} of {k_cache[1]}")
    return (q,)


@rule("q:T k_cache:T v_cache:T start_pos:i mask:- dropout:f causal:b scale:f?",
      "llama.custom_sdpa.default")
def custom_sdpa(q, k_cache, v_cache, start, *_numbers):
    need_head(q, "q")
    need_head(k_cache, "k_cache")
    need_sizes(k_cache, (q[0], *k_cache[1:3], q[3]), "k_cache")
    need_groups(q[2], k_cache[2], "k_cache")
    need_sizes(v_cache, k_cache, "v_cache")
    if not 0 <= start <= k_cache[1] - q[1]:
        fail("start_pos", f"positions {start} to {start + q[1] - 1} of {k_cache[1]}")
    return (q,)


@rule("q:T k:T v:T mask:T? scale:f?", "et_vk.sdpa.default")
def sdpa(q, k, v, mask, _scale):
    need_head(q, "q")
    need_head(k, "k")
    need_sizes(k, (*q[:2], k[2], q[3]), "k")
    need_rank(v, 4, "v")
    need_sizes(v, (*k[:3], v[3]), "v")
    need_broadcast(mask, (*q[:3], k[2]), "mask")
    return ((*q[:3], v[3]),)
