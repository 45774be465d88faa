"""A small program of every family of kernels, with what numpy computes for it in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkrt.cli.bits import first_difference
from vkrt.device.rows import STORAGES
from vkrt.errors import PipelineError, UnsupportedError, VkrtError, VulkanError
from vkrt.graph.graph import Graph, Node
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.plan.options import LoadOptions
from vkrt.vk.device import Device
from vkrt.work.records import Dispatch
from vkrt.work.tensor import Constant, Tensor

# Relative errors (L2) beyond which a result is wrong, by the dtype of the input. In an integer
# result, one number in some thousand may be rounded the other way.
BOUNDS = {"float32": 1e-5, "float16": 2e-3, "int8": 1e-3}
FLOATS = ("float32", "float16")


@dataclass(frozen=True)
class Program:
    """One operator.

    Attributes:
        name: of the family of kernels.
        op: the operator's name in delegates.
        arrays: the input, then constants.
        rest: the operator's arguments that are no tensors, behind the arrays.
        compute: computes the result from the arrays in float64.
        winograd: see `vkrt.load`.
        between: arguments that stand between the arrays: (place among all arguments, value).
        dtypes: of the input; a float dtype is also the constants' dtype.
    """

    name: str
    op: str
    arrays: tuple[np.ndarray, ...]
    rest: tuple[Any, ...]
    compute: Callable[..., np.ndarray]
    winograd: str = "auto"
    between: tuple[tuple[int, Any], ...] = ()
    dtypes: tuple[str, ...] = FLOATS


@dataclass(frozen=True)
class Finding:
    """The result of a program.

    Attributes:
        error: relative, L2; None if there is no result.
        message: why there is no result, or what differs from run to run; else "".
        wrong: whether the device fails the test because of this.
        shaders: the shaders that ran, in order.
    """

    name: str
    dtype: str
    storage: str
    error: float | None = None
    message: str = ""
    wrong: bool = False
    shaders: tuple[str, ...] = ()


def _numbers(*sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *sizes]).uniform(-1, 1, sizes).astype(np.float32)


def _convolved(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, groups: int = 1) -> np.ndarray:
    """A convolution that keeps the size, of stride 1, one tap after the other."""
    pad = weight.shape[-1] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = x.shape[2:]
    own = weight.shape[1]
    out = np.zeros((1, weight.shape[0], height, width))
    for group in range(groups):
        rows = slice(group * weight.shape[0] // groups, (group + 1) * weight.shape[0] // groups)
        part = padded[0, group * own:(group + 1) * own]
        for (i, j) in np.ndindex(*weight.shape[2:]):
            out[0, rows] += np.tensordot(weight[rows, :, i, j],
                                         part[:, i:i + height, j:j + width], 1)
    return out + bias[:, None, None]


def _convolution(name: str, weight: np.ndarray, groups: int = 1, side: int = 13,
                 winograd: str = "auto") -> Program:
    pad = weight.shape[-1] // 2
    x = _numbers(1, weight.shape[1] * groups, side, side, seed=1)
    return Program(name, "aten.convolution.default", (x, weight, _numbers(weight.shape[0], seed=2)),
                   ([1, 1], [pad, pad], [1, 1], False, [0, 0], groups),
                   lambda x, w, b: _convolved(x, w, b, groups), winograd)


def _softmax(x: np.ndarray) -> np.ndarray:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def _normalized(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def _pooled(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).max((3, 5))


# Scale and zero point of a quantized input, and of the result
STEP, RESULT_STEP = (0.02, 5), (0.05, -9)


def _levels(*sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *sizes]).integers(-128, 128, sizes, np.int8)


def _quantized(name: str, op: str, x: np.ndarray, channels: int, depth: int, rest: tuple[Any, ...],
               compute: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Program:
    """A product of 8-bit numbers with a scale for each of its channels. `compute` gets the
    dequantized x, weights [channels, depth] and a bias."""
    weights = _levels(channels, depth, seed=1)
    sums = weights.sum(1, dtype=np.int32)
    scales = (np.abs(_numbers(channels, seed=4)) + 0.5) / 512 / depth ** 0.5

    def quantized(x, weights, _sums, scales, bias):
        y = compute((x - STEP[1]) * STEP[0], weights * scales[:, None], bias)
        return np.clip(np.rint(y / RESULT_STEP[0]) + RESULT_STEP[1], -128, 127)

    arrays = x, weights, sums, scales, _numbers(channels, seed=5)
    return Program(name, op, arrays, rest, quantized, dtypes=("int8",), between=(
        (1, STEP[0]), (2, STEP[1]), (6, RESULT_STEP[0]), (7, RESULT_STEP[1])))


PROGRAMS = (
    Program("unary", "aten.exp.default", (_numbers(3, 5, 7),), (), np.exp),
    Program("binary", "aten.add.Tensor", (_numbers(3, 5, 7), _numbers(5, 1)), (1,), np.add),
    Program("copy", "aten.permute_copy.default", (_numbers(3, 5, 7),), ([2, 0, 1],),
            lambda x: x.transpose(2, 0, 1)),
    Program("reduce", "aten.mean.dim", (_numbers(9, 33, 10),), ([1],), lambda x: x.mean(1)),
    Program("softmax", "aten._softmax.default", (_numbers(6, 77),), (-1, False), _softmax),
    Program("layer_norm", "aten.native_layer_norm.default",
            (_numbers(6, 77), _numbers(77), _numbers(77, seed=3)), (1e-5,), _normalized,
            between=((1, [77]),)),
    Program("matmul", "aten.linear.default", (_numbers(37, 50), _numbers(45, 50), _numbers(45)), (),
            lambda x, w, b: x @ w.T + b),
    Program("gemv", "aten.linear.default", (_numbers(1, 130), _numbers(66, 130), _numbers(66)), (),
            lambda x, w, b: x @ w.T + b),
    Program("bmm", "aten.bmm.default", (_numbers(3, 9, 20), _numbers(3, 20, 11)), (), np.matmul),
    Program("max_pool2d", "aten.max_pool2d.default", (_numbers(1, 6, 12, 10),),
            ([2, 2], [2, 2], [0, 0], [1, 1], False), _pooled),
    _convolution("conv2d", _numbers(20, 6, 3, 3)),
    _convolution("conv2d_1x1", _numbers(20, 12, 1, 1)),
    _convolution("conv2d_depthwise", _numbers(12, 1, 3, 3), groups=12),
    _convolution("conv2d_grouped", _numbers(16, 4, 3, 3), groups=2),
    _convolution("winograd", _numbers(32, 32, 3, 3), side=24, winograd="always"),
    _quantized("linear_q8", "et_vk.q8ta_linear.default", _levels(37, 64), 48, 64, ("none",),
               lambda x, w, b: x @ w.T + b),
    _quantized("conv2d_q8", "et_vk.q8ta_conv2d.default", _levels(1, 16, 13, 13), 20, 144,
               ([3, 3], [1, 1], [1, 1], [1, 1], 1, "none"),
               lambda x, w, b: _convolved(x, w.reshape(20, 3, 3, 16).transpose(0, 3, 1, 2), b)),
)


def _graph(program: Program, dtype: str) -> tuple[Graph, bytes]:
    """The program's graph in a dtype, and its constants."""
    arrays = _arrays(program, dtype)
    data = b""
    tensors = [Tensor(arrays[0].shape, dtype, name="input 0")]
    for array in arrays[1:]:
        tensors.append(Tensor(array.shape, array.dtype.name,
                              constant=Constant(len(data), array.nbytes, array.dtype.name)))
        data += array.tobytes() + bytes(-array.nbytes % 256)
    expected = _expected(program, dtype)
    arguments: list[Any] = [*tensors, *program.rest]
    for place, value in program.between:
        arguments.insert(place, value)
    outs = [Tensor(expected.shape, dtype)]
    if program.op == "aten.native_layer_norm.default":
        outs += [Tensor((*arrays[0].shape[:-1], 1), dtype) for _ in range(2)]
    node = Node(program.op, tuple(arguments), tuple(outs), program.name)
    return Graph("selftest", tensors[:1], outs[:1], [node]).finish(), data


def _arrays(program: Program, dtype: str) -> list[np.ndarray]:
    return [array.astype(dtype) if dtype in FLOATS else array for array in program.arrays]


def _expected(program: Program, dtype: str) -> np.ndarray:
    """The exact result for inputs and constants that are rounded to a dtype."""
    return program.compute(*(array.astype(np.float64) for array in _arrays(program, dtype)))


def run(device: Device, runs: int = 1) -> Iterator[Finding]:
    """Runs every program in every storage and precision on a device; all `runs` of each have to
    give the same bits. A VulkanError, but for PipelineError, ends the test."""
    for program in PROGRAMS:
        for dtype in program.dtypes:
            graph, data = _graph(program, dtype)
            for storage in STORAGES:
                what = (program.name, dtype, storage)
                options = LoadOptions(storage=storage, winograd=program.winograd)
                try:
                    result, differs, shaders = _result(
                        graph, data, _arrays(program, dtype)[0], device, options, runs)
                except UnsupportedError as error:
                    yield Finding(*what, message=str(error))
                    continue
                except VkrtError as error:
                    yield Finding(*what, message=f"{type(error).__name__}: {error}", wrong=True)
                    if isinstance(error, VulkanError) and not isinstance(error, PipelineError):
                        raise
                    continue
                expected = _expected(program, dtype)
                off = float(np.linalg.norm(result.astype(np.float64) - expected)
                            / np.linalg.norm(expected))
                yield Finding(*what, off, differs, bool(differs) or not off <= BOUNDS[dtype],
                              shaders)


def _result(graph: Graph, data: bytes, x: np.ndarray, device: Device, options: LoadOptions,
            runs: int) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """The result, what differs in further runs, and the shaders that ran."""
    method = Method(graph, [Source.wrap(data)], device, options=options)
    try:
        first = method.execute([x])
        differs = first_difference(first, lambda: method.execute([x]), runs)
        shaders = dict.fromkeys(step.shader for step in method.work.steps
                                if isinstance(step, Dispatch))
        return first[0], differs[1] if differs else "", tuple(shaders)
    finally:
        method.close()
