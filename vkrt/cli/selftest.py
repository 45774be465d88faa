"""A small program of every family of kernels, with what numpy computes for it in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from vkrt.dataclass import dataclass
from vkrt.device.rows import STORAGES
from vkrt.errors import UnsupportedError, VkrtError, VulkanError
from vkrt.graph.graph import Graph, Node
from vkrt.hints import Any
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.plan.options import LoadOptions
from vkrt.vk.device import Device
from vkrt.work.tensor import Constant, Tensor

# Relative errors (L2) beyond which a result is wrong
BOUNDS = {"float32": 1e-5, "float16": 2e-3}


@dataclass(frozen=True)
class Program:
    """One operator.

    Attributes:
        name: of the family of kernels.
        op: the operator's name in delegates.
        arrays: of its first arguments: the input, then constants.
        rest: its further arguments.
        compute: what it comes to, of the arrays in float64.
        winograd: see `vkrt.load`.
    """

    name: str
    op: str
    arrays: tuple[np.ndarray, ...]
    rest: tuple[Any, ...]
    compute: Callable[..., np.ndarray]
    winograd: str = "auto"


@dataclass(frozen=True)
class Finding:
    """What became of a program.

    Attributes:
        name, dtype, storage: what ran.
        error: relative, L2; None where nothing came out.
        message: why; "" where it ran.
        wrong: whether the device fails the test by it.
    """

    name: str
    dtype: str
    storage: str
    error: float | None = None
    message: str = ""
    wrong: bool = False


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


PROGRAMS = (
    Program("unary", "aten.exp.default", (_numbers(3, 5, 7),), (), np.exp),
    Program("binary", "aten.add.Tensor", (_numbers(3, 5, 7), _numbers(5, 1)), (1,), np.add),
    Program("copy", "aten.permute_copy.default", (_numbers(3, 5, 7),), ([2, 0, 1],),
            lambda x: x.transpose(2, 0, 1)),
    Program("reduce", "aten.mean.dim", (_numbers(9, 33, 10),), ([1],), lambda x: x.mean(1)),
    Program("softmax", "aten._softmax.default", (_numbers(6, 77),), (-1, False), _softmax),
    Program("layer_norm", "aten.native_layer_norm.default",
            (_numbers(6, 77), _numbers(77), _numbers(77, seed=3)), (1e-5,), _normalized),
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
)


def _graph(program: Program, dtype: str) -> tuple[Graph, bytes]:
    """The program's graph in a dtype, and its constants."""
    arrays = [array.astype(dtype) for array in program.arrays]
    data = b""
    tensors = [Tensor(arrays[0].shape, dtype, name="input 0")]
    for array in arrays[1:]:
        tensors.append(Tensor(array.shape, dtype,
                              constant=Constant(len(data), array.nbytes, dtype)))
        data += array.tobytes() + bytes(-array.nbytes % 256)
    expected = _expected(program, dtype)
    arguments: list[Any] = [*tensors, *program.rest]
    outs = [Tensor(expected.shape, dtype)]
    if program.op == "aten.native_layer_norm.default":
        arguments.insert(1, list(arrays[1].shape))
        outs += [Tensor((*arrays[0].shape[:-1], 1), dtype) for _ in range(2)]
    node = Node(program.op, tuple(arguments), tuple(outs), program.name)
    return Graph("selftest", tensors[:1], outs[:1], [node]).finish(), data


def _expected(program: Program, dtype: str) -> np.ndarray:
    """What comes out where inputs and constants are rounded to a dtype, and nothing else is."""
    return program.compute(*(array.astype(dtype).astype(np.float64) for array in program.arrays))


def run(device: Device) -> Iterator[Finding]:
    """Runs every program in every storage and precision on a device.

    Raises:
        DeviceLostError: nothing further can run.
    """
    for program in PROGRAMS:
        for dtype, bound in BOUNDS.items():
            graph, data = _graph(program, dtype)
            for storage in STORAGES:
                what = (program.name, dtype, storage)
                options = LoadOptions(storage=storage, winograd=program.winograd)
                try:
                    result = _result(graph, data, program.arrays[0].astype(dtype), device, options)
                except UnsupportedError as error:
                    yield Finding(*what, message=str(error))
                    continue
                except VkrtError as error:
                    yield Finding(*what, message=f"{type(error).__name__}: {error}", wrong=True)
                    if isinstance(error, VulkanError):
                        raise
                    continue
                expected = _expected(program, dtype)
                off = float(np.linalg.norm(result.astype(np.float64) - expected)
                            / np.linalg.norm(expected))
                yield Finding(*what, error=off, wrong=not off <= bound)


def _result(graph: Graph, data: bytes, x: np.ndarray, device: Device,
            options: LoadOptions) -> np.ndarray:
    method = Method(graph, [Source.wrap(data)], device, options=options)
    try:
        return method.execute([x])[0]
    finally:
        method.close()
