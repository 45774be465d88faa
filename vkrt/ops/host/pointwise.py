"""Host kernels that make every element from the elements at the same place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vkrt.ops.dtypes import ANY
from vkrt.ops.elementwise import div_mode_sizes
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import broadcast, fail, same, together, wrap

if TYPE_CHECKING:
    import numpy as np
else:
    from vkrt.late import numpy as np



def of_numpy(name: str) -> Callable:
    """The function of numpy of a name, looked for when it is called."""
    return lambda *args: getattr(np, name)(*args)


BINARY = {
    "floor_divide.out": "floor_divide",
    "bitwise_left_shift.Tensor_out": "left_shift",
    "bitwise_right_shift.Tensor_out": "right_shift",
}

for _name, _function in BINARY.items():
    host_kernel(f"aten::{_name}", "self:T other:T", sizes=together, dtypes=ANY)(
        of_numpy(_function))
for _name in ("and", "or", "xor"):
    host_kernel(f"aten::bitwise_{_name}.Scalar_out", "self:T other:n", sizes=same,
                dtypes=ANY)(of_numpy(f"bitwise_{_name}"))


@host_kernel("aten::div.Scalar_mode_out", "self:T other:n rounding_mode:s?",
             sizes=lambda x, _n, mode: div_mode_sizes(x, (), mode), dtypes=ANY)
def divided(x, number, mode=None):
    quotient = np.floor_divide(x, number) if mode == "floor" else np.true_divide(x, number)
    return np.trunc(quotient) if mode == "trunc" else quotient


@host_kernel("aten::pow.Scalar_out", "self:n exponent:T",
             sizes=lambda _number, exponent: (exponent,), dtypes=ANY)
def power(number, exponent):
    # To torch the number has the dtype of floats beside it.
    base = np.asarray(number).astype(exponent.dtype) if exponent.dtype.kind == "f" else number
    return np.power(np.float64(base), exponent)


def clamp_sizes(x, *bounds):
    return (broadcast(x, *(bound for bound in bounds if bound is not None)),)


@host_kernel("aten::clamp.Tensor_out", "self:T min:T? max:T?", sizes=clamp_sizes, dtypes=ANY)
def clamp(x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def gated_sizes(x, dim):
    dim = wrap(dim, len(x))
    if not x or x[dim] % 2:
        fail("dim", f"expected an even number of elements in dimension {dim} of {list(x)}")
    return ((*x[:dim], x[dim] // 2, *x[dim + 1:]),)


@host_kernel("aten::glu.out", "self:T dim:i", sizes=gated_sizes, dtypes=ANY)
def gated(x, dim=-1):
    value, gate = np.split(x, 2, int(dim))
    return value / (1 + np.exp(-gate))


@host_kernel("aten::masked_fill.Scalar_out", "self:T mask:T.bool value:n",
             sizes=together, dtypes=ANY)
def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


def triangle_sizes(x, _diagonal):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    return (x,)


@host_kernel("aten::tril.out", "self:T diagonal:i?", sizes=triangle_sizes, dtypes=ANY)
def tril(x, diagonal=0):
    return np.tril(x, int(diagonal))


@host_kernel("aten::triu.out", "self:T diagonal:i?", sizes=triangle_sizes, dtypes=ANY)
def triu(x, diagonal=0):
    return np.triu(x, int(diagonal))
