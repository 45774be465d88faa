"""Every operator that takes a number, with the numbers at the ends of what floats hold.

What comes out is computed by numpy in the precision of the kernels, fp32, and follows PyTorch. The
Vulkan specification lets a device take denormal numbers for zeros, where it reads and where it
writes: `expectations` gives every result that this allows.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

LARGEST = float(np.finfo(np.float32).max)
# Half way from there to 2^128, which float32 rounds to infinity, and the double before it.
OVERFLOW = 3.4028235677973366e38
NUMBERS = (
    -LARGEST, LARGEST, math.nextafter(OVERFLOW, 0), OVERFLOW, -OVERFLOW, 1.7976931348623157e308,
    math.inf, -math.inf, math.nan, 0.0, -0.0,
    2.0**-126, -2.0**-126, 2.0**-149, -1e-40,  # float32: smallest normal, denormals
    65504.0, -65504.0, 65519.99, 65520.0,  # half: largest, rounds to it, rounds to infinity
    2.0**-14, 2.0**-24, -2.0**-25,  # half: smallest normal, smallest, tie between that and zero
    0.3,
)

X = np.array([0, -0.0, 1, -1, 2.5, -7, 1e-3, 0.3, 100, 65504, -65504, math.inf, -math.inf,
              math.nan, LARGEST, -LARGEST, 2.0**-126, 2.0**-24], np.float32)
Y = np.resize(np.float32([1, -1, 0.5, 0]), X.size)
ROWS = np.float32([[1, 2, 4, 9, -3], [0.5, -0.25, 0, 1, 2]])
WEIGHT = np.float32([[0.5, -1], [2, 0.25], [1, 1], [-0.5, 0.125], [0.75, 3]])

FLOATS = {np.float32: 2.0**-126, np.float16: 2.0**-14}
RELATIVE = {np.float32: 1e-5, np.float16: 1e-3}


@dataclass
class Operator:
    """An operator with a number among its arguments.

    Attributes:
        op: its name.
        args: gets the number, gives the arguments; arrays stand for tensors.
        function: gets the arrays in float32 and then the number, gives the result in float32.
        dtype: of the result; None is that of the arrays.
        rounds: whether torch rounds the number to the arrays' dtype first.
        numbers: which.
        constants: indices of arguments that are constants of the program.
        more: sizes of the results behind the first, which nobody reads.
    """

    op: str
    args: Callable[[float], list]
    function: Callable[..., np.ndarray]
    dtype: str | None = None
    rounds: bool = False
    numbers: tuple[float, ...] = NUMBERS
    constants: tuple[int, ...] = ()
    more: tuple[tuple[int, ...], ...] = ()
    name: str = ""

    def __str__(self):
        return f"{self.op}[{self.name}]" if self.name else self.op


def single(number: float) -> np.ndarray:
    """The nearest float32 as a 0-d array."""
    with np.errstate(over="ignore"):
        return np.array(number, np.float32)


def limited(x, low, high):
    if math.isnan(low) or math.isnan(high):
        return np.full_like(x, math.nan)
    x = np.where(x < low, low, x)
    return np.where(x > high, high, x)


def remainder(x, number):
    r = np.fmod(x, number)
    return np.where((r != 0) & ((r < 0) != (number < 0)), r + number, r)


def normalized(x, number, axis=-1):
    mean = x.mean(axis, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean)**2).mean(axis, keepdims=True) + number)


def product(x, weight, bias, beta, alpha):
    return alpha * (x @ weight) + (beta * bias if beta != 0 else np.float32(0))


def filled(*rest):
    return np.full(3, rest[-1], np.float32)


WITH_SCALAR = {"add": np.add, "sub": np.subtract, "rsub": lambda x, n: n - x, "mul": np.multiply,
               "div": np.divide, "fmod": np.fmod, "remainder": remainder}
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal}
# The exporter makes 0-d constants of most numbers.
WITH_CONSTANT = {"add.Tensor": np.add, "mul.Tensor": np.multiply, "div.Tensor": np.divide,
                 "minimum.default": np.minimum, "maximum.default": np.maximum,
                 "pow.Tensor_Tensor": np.power}
FINITE = tuple(n for n in NUMBERS if not math.isnan(n))

OPERATORS = [
    *(Operator(f"aten.{name}.Scalar",
               lambda n, rest=([1] if "add" in name or "sub" in name else []): [X, n, *rest],
               function, rounds=name in ("fmod", "remainder"))
      for name, function in WITH_SCALAR.items()),
    *(Operator(f"aten.{name}.Scalar", lambda n: [X, n], function, dtype="bool", rounds=True)
      for name, function in COMPARISONS.items()),
    *(Operator(f"aten.{name}", lambda n, rest=([1] if "add" in name else []):
               [X, single(n), *rest], function, constants=(1,), rounds=True,
               name="constant") for name, function in WITH_CONSTANT.items()),
    Operator("aten.pow.Tensor_Scalar", lambda n: [X, n], np.power,
             numbers=tuple(n for n in NUMBERS if n != 0.3)),
    Operator("aten.where.self", lambda n: [Y > 0, X, single(n)],
             lambda c, x, n: np.where(c, x, n), constants=(2,), rounds=True),
    Operator("aten.clamp.default", lambda n: [X, n, None], lambda x, n: limited(x, n, math.inf),
             name="below"),
    Operator("aten.clamp.default", lambda n: [X, None, n], lambda x, n: limited(x, -math.inf, n),
             name="above"),
    Operator("aten.hardtanh.default", lambda n: [X, n, 1.0], lambda x, n: limited(x, n, 1)),
    Operator("aten.hardshrink.default", lambda n: [X, n],
             lambda x, n: np.where((x >= -n) & (x <= n), np.float32(0), x), rounds=True),
    Operator("aten.leaky_relu.default", lambda n: [X, n], lambda x, n: np.where(x > 0, x, x * n)),
    Operator("aten.add.Tensor", lambda n: [X, Y, n], lambda x, y, n: x + y * n, name="alpha"),
    Operator("aten.sub.Tensor", lambda n: [X, Y, n], lambda x, y, n: x - y * n, name="alpha"),
    Operator("aten.rsub.Scalar", lambda n: [Y, 2, n], lambda y, n: 2 - y * n, name="alpha"),
    Operator("aten.full.default", lambda n: [[3], n, None], filled, dtype="float32"),
    Operator("aten.full_like.default", lambda n: [X[:3], n, None], filled),
    Operator("aten.scalar_tensor.default", lambda n: [n, None], lambda n: np.float32(n),
             dtype="float32"),
    Operator("aten.constant_pad_nd.default", lambda n: [X, [1, 2], n],
             lambda x, n: np.concatenate([[n], x, [n, n]])),
    Operator("aten.addmm.default", lambda n: [Y[:2], ROWS, WEIGHT, n, 1],
             lambda b, x, w, n: product(x, w, b, n, 1), name="beta"),
    Operator("aten.addmm.default", lambda n: [Y[:2], ROWS, WEIGHT, 1, n],
             lambda b, x, w, n: product(x, w, b, 1, n), name="alpha"),
    Operator("et_vk.conv_with_clamp.default",
             lambda n: [ROWS[None], ROWS.T[:4, :, None].copy(), None, [1], [0], [1], False, [0], 1,
                        n, None],
             lambda x, w, n: limited(np.einsum("oi,nil->nol", w[..., 0], x), n, math.inf),
             numbers=FINITE, constants=(1,), name="below"),
    Operator("et_vk.conv_with_clamp.default",
             lambda n: [ROWS[None], ROWS.T[:4, :, None].copy(), None, [1], [0], [1], False, [0], 1,
                        1.0, n],
             lambda x, w, n: limited(np.einsum("oi,nil->nol", w[..., 0], x), 1, n),
             numbers=FINITE, constants=(1,), name="above"),
    Operator("aten.native_layer_norm.default", lambda n: [ROWS, [5], None, None, n], normalized,
             more=((2, 1), (2, 1))),
    Operator("aten.native_group_norm.default",
             lambda n: [ROWS[:, :4, None].copy(), None, None, 2, 4, 1, 2, n],
             lambda x, n: normalized(x.reshape(2, 2, 2), n).reshape(2, 4, 1),
             more=((2, 2), (2, 2))),
    Operator("aten._native_batch_norm_legit_no_training.default",
             lambda n: [ROWS, None, None, Y[:5] + 1, np.float32([1, 2, 3, 0.5, 0]), 0.1, n],
             lambda x, mean, variance, n: (x - mean) / np.sqrt(variance + n), constants=(3, 4),
             more=((0,), (0,))),
]


def flushed(values: np.ndarray, least: float) -> np.ndarray:
    """The values with zeros in the place of magnitudes below `least`, of the same sign."""
    return np.where(np.abs(values) < least, np.copysign(np.zeros_like(values), values), values)


def expectations(operator: Operator, number: float, dtype: type) -> Iterator[np.ndarray]:
    """What a device may give for arrays of np.float32 or np.float16: each of the arrays in turn,
    the number and the result may lose what is denormal."""
    with np.errstate(all="ignore"):
        arrays = [a.astype(dtype) if a.dtype == np.float32 else a for a in operator.args(number)
                  if isinstance(a, np.ndarray)]
        if operator.constants and operator.rounds:
            arrays = arrays[:-1]  # the number itself
        value = np.float32(dtype(number)) if operator.rounds else np.float32(number)
        for least_in, least_number, least_out in itertools.product(
                (0.0, FLOATS[dtype]), (0.0, FLOATS[np.float32]), (0.0, FLOATS[dtype])):
            given = [flushed(a.astype(np.float32), least_in) if a.dtype == dtype else a
                     for a in arrays]
            result = np.asarray(operator.function(*given, flushed(value, least_number)))
            if result.dtype.kind == "f":
                result = flushed(result.astype(np.float32), FLOATS[np.float32] * (least_out > 0))
                result = flushed(result.astype(dtype), least_out)
            yield result


def agrees(result: np.ndarray, candidates: list[np.ndarray], dtype: type) -> np.ndarray:
    """Which elements of a result are those of one of the candidates."""
    found = np.zeros(result.shape, bool)
    with np.errstate(all="ignore"):
        for expected in candidates:
            wanted = expected.astype(np.float64)
            near = np.abs(result.astype(np.float64) - wanted) <= RELATIVE[dtype] * np.abs(wanted)
            found |= near | (result == expected) | (np.isnan(result) & np.isnan(wanted))
    return found
