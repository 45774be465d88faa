"""Matrix products of whole numbers, which are exact as long as every sum fits into 32 bits."""

from __future__ import annotations

from vkrt.ops.arguments import limited
from vkrt.ops.broadcast import convert, result_in
from vkrt.ops.elementwise import binary, unary
from vkrt.work.tensor import Tensor, row_major


def multiply_whole(cx, out: Tensor, a: Tensor, b: Tensor) -> None:
    """Makes `out` the product of [.., M, K] and [.., K, N], modulo 2^8 for 8-bit numbers."""
    source, matrix = (convert(cx, cx.read(t, row_major(t.rank)), "int32") for t in (a, b))
    *outer, rows, depth = a.sizes
    with result_in(cx, "int32", out) as result:
        cx.dispatch("matmul_whole", [rows, outer[0] if outer else 1, depth, result.packed],
                    [result], [source, matrix], result.texels, loops=depth + source.grid[2])


def add_product_whole(cx, out: Tensor, bias: Tensor, a: Tensor, b: Tensor, beta: float,
                      alpha: float) -> None:
    """Makes `out` beta * bias + alpha * (a times b), without the bias where beta is 0."""
    product = Tensor(out.sizes, out.dtype)
    multiply_whole(cx, product, a, b)
    if beta == 0:
        unary(cx, out, "TIMES", product, limited(alpha))
        return
    scaled = bias
    if beta != 1:
        scaled = Tensor(bias.sizes, bias.dtype)
        unary(cx, scaled, "TIMES", bias, limited(beta))
    binary(cx, out, "ADD", scaled, product, limited(alpha))
