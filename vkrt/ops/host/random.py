"""Host kernels of random numbers, from one sequence for the process: numpy's Philox.

They are not PyTorch's numbers; PyTorch's generators also differ from device to device. The sequence
begins with the system's entropy, and begins anew with `manual_seed`.
"""

from __future__ import annotations

from functools import cache

from vkrt.ops.arguments import INT_MAX, INT_MIN
from vkrt.ops.concat import filled_sizes
from vkrt.ops.dtypes import ANY, FLOATS, DtypeRule
from vkrt.ops.host import np
from vkrt.ops.registry import host_kernel
from vkrt.ops.sizes import at_least, fail, same, unsupported

# Rounded to a half, a number below 1 could become 1.
_UNIFORM = DtypeRule(lambda _args: frozenset({"float32"}))
_NORMAL = DtypeRule(lambda _args: FLOATS)


@cache
def _sequence() -> np.random.Generator:
    """The numbers of the process, for any thread."""
    return np.random.Generator(np.random.Philox())


def manual_seed(seed: int) -> None:
    """Begins the sequence of random numbers anew.

    Args:
        seed: a whole number of at least 0; the same seed gives the same numbers.

    Raises:
        ValueError: the seed is negative.
    """
    generator = _sequence().bit_generator
    generator.state = np.random.Philox(seed).state


@host_kernel("aten::rand.out", "size:[i] *:*", sizes=filled_sizes, dtypes=_UNIFORM)
def uniform_of_sizes(size, *_how):
    """From 0 up to 1, which is left out."""
    return _sequence().random(tuple(size), np.float32)


@host_kernel("aten::rand_like.out", "self:T *:*", sizes=same, dtypes=_UNIFORM)
def uniform_like(x, *_how):
    return uniform_of_sizes(x.shape)


@host_kernel("aten::uniform.out", "self:T from:f? to:f? *:*", sizes=same, dtypes=_UNIFORM)
def uniform_between(x, low=0.0, high=1.0, *_how):
    return low + (high - low) * uniform_of_sizes(x.shape)


@host_kernel("aten::bernoulli.out", "self:T *:*", sizes=same, dtypes=ANY)
def ones_by_their_chances(x, *_how):
    """1 with the probability that the element of x says, else 0."""
    return uniform_of_sizes(x.shape) < x


@host_kernel("aten::randn.out", "size:[i] *:*", sizes=filled_sizes, dtypes=_NORMAL)
def normal_of_sizes(size, *_how):
    """With mean 0 and variance 1."""
    return _sequence().standard_normal(tuple(size), np.float32)


@host_kernel("aten::randn_like.out", "self:T *:*", sizes=same, dtypes=_NORMAL)
def normal_like(x, *_how):
    return normal_of_sizes(x.shape)


def integer_sizes(low, high, size):
    if low >= high:
        fail("high", f"expected more than {low}, got {high}")
    if low < INT_MIN or high - 1 > INT_MAX:
        unsupported("high", f"numbers from {low} to {high - 1}; integers have 32 bits")
    return filled_sizes(size)


@host_kernel("aten::randint.low_out", "low:i high:i size:[i] *:*", sizes=integer_sizes, dtypes=ANY)
def integers(low, high, size, *_how):
    """From low up to high, which is left out."""
    return _sequence().integers(int(low), int(high), tuple(size))


@host_kernel("aten::randint.out", "high:i size:[i] *:*",
             sizes=lambda high, size: integer_sizes(0, high, size), dtypes=ANY)
def integers_from_0(high, size, *_how):
    return integers(0, high, size)


@host_kernel("aten::randperm.out", "n:i *:*", sizes=lambda n: ((at_least(n, 0, "n"),),), dtypes=ANY)
def permutation(n, *_how):
    """The numbers from 0 to n - 1 in any order."""
    return _sequence().permutation(int(n))
