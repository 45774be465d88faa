"""Host kernels of Fourier transforms. Complex numbers are pairs, in a last dimension of size 2
(`vkrt.graph.pairs`), and dimensions are counted from the front."""

from __future__ import annotations

from vkrt.ops.dtypes import ANY
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import fail

# What torch divides by: nothing, the root of the number of elements, or that number
NONE, ROOT, COUNT = range(3)


def _need_pairs(x, name="self"):
    if not x or x[-1] != 2:
        fail(name, f"expected pairs, got sizes {list(x)}")


def _need_dims(x, dims, normalization, rank):
    if not dims or any(not 0 <= dim < rank for dim in dims):
        fail("dim", f"expected dimensions of sizes {list(x[:rank])}, got {list(dims)}")
    if normalization not in (NONE, ROOT, COUNT):
        fail("normalization", f"expected 0, 1 or 2, got {normalization}")


def real_sizes(x, dims, normalization, onesided):
    _need_dims(x, dims, normalization, len(x))
    sizes = list(x)
    if onesided:
        sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
    return ((*sizes, 2),)


def back_sizes(x, dims, normalization, count):
    _need_pairs(x)
    _need_dims(x, dims, normalization, len(x) - 1)
    if count < 1 or x[dims[-1]] < count // 2 + 1:
        fail("last_dim_size", f"expected what {x[dims[-1]]} numbers give, got {count}")
    sizes = list(x[:-1])
    sizes[dims[-1]] = count
    return (tuple(sizes),)


def pair_sizes(x, dims, normalization, _forward):
    _need_pairs(x)
    _need_dims(x, dims, normalization, len(x) - 1)
    return (x,)


def _scale(counts: list[int], normalization: int) -> float:
    import math

    return math.prod(counts) ** {NONE: 0.0, ROOT: -0.5, COUNT: -1.0}[normalization]


def _complex(pairs: np.ndarray) -> np.ndarray:
    return pairs[..., 0] + 1j * pairs[..., 1].astype("float64")


def _pairs(numbers: np.ndarray) -> np.ndarray:
    return np.stack([numbers.real, numbers.imag], -1)


@host_kernel("aten::_fft_r2c.out", "self:T dim:[i] normalization:i onesided:b", sizes=real_sizes,
             dtypes=ANY)
def forward_of_reals(x, dims, normalization, onesided):
    x = x.astype(np.float64)
    result = np.fft.rfftn(x, axes=dims) if onesided else np.fft.fftn(x, axes=dims)
    return _pairs(result * _scale([x.shape[dim] for dim in dims], normalization))


@host_kernel("aten::_fft_c2r.out", "self:T dim:[i] normalization:i last_dim_size:i",
             sizes=back_sizes, dtypes=ANY)
def back_to_reals(x, dims, normalization, count):
    lengths = [*(x.shape[dim] for dim in dims[:-1]), count]
    result = np.fft.irfftn(_complex(x), lengths, axes=dims, norm="forward")
    return result * _scale(lengths, normalization)


@host_kernel("aten::_fft_c2c.out", "self:T dim:[i] normalization:i forward:b", sizes=pair_sizes,
             dtypes=ANY)
def of_pairs(x, dims, normalization, forward):
    numbers = _complex(x)
    result = (np.fft.fftn(numbers, axes=dims) if forward
              else np.fft.ifftn(numbers, axes=dims, norm="forward"))
    return _pairs(result * _scale([x.shape[dim] for dim in dims], normalization))
