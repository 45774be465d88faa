"""The host kernels: name of the program's kernel -> function on numpy arrays.

A kernel gets the positional arguments of the program (arrays in the place of tensors, without the
out tensors) and writes into `outs`, arrays of the outputs' shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vkrt.errors import UnsupportedError

_KERNELS: dict[str, Callable[..., None]] = {}


def kernel(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares a function as the host kernel of this name."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        _KERNELS[name] = function
        return function

    return declare


def has_kernel(name: str) -> bool:
    """Whether vkrt can run this kernel on the host."""
    return name in _KERNELS


def supported() -> tuple[str, ...]:
    """Names of all host kernels, sorted."""
    return tuple(sorted(_KERNELS))


def run_kernel(name: str, args: tuple[Any, ...], outs: tuple[np.ndarray, ...]) -> None:
    """Runs a host kernel.

    Raises:
        UnsupportedError: if there is none of this name.
    """
    if name not in _KERNELS:
        raise UnsupportedError(f"vkrt has no host kernel {name}")
    _KERNELS[name](args, outs)


@kernel("aten::mean.out")
def _mean(args, outs):
    source, dims, keepdim = args[:3]
    axis = tuple(int(d) for d in dims) if dims else None
    # torch sums fp32 in fp32; numpy's pairwise sum stays within its rounding.
    np.mean(source, axis=axis, keepdims=bool(keepdim), out=outs[0])
