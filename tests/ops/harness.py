"""One operator as a program: samples, the graphs made of them, and the comparison of results."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from graph_maker import Constants

from vkrt.device.policy import SWIFTSHADER
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import RuntimeScalar
from vkrt.lowering.lowering import lower
from vkrt.work.limits import Read
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor, channels_last, device_dtype

# Relative L2 error that results held in half precision may have.
HALF_TOLERANCE = 2e-3

# A value of the result may be off by this many times the relative L2 tolerance of the largest.
LARGEST_ERROR = 20

LAYOUTS = ("plain", "channels_last")

# The group of samples whose results with an infinity or NaN in an input are compared exactly, by
# test_spreading.py; of other groups test_ops.py looks at what NaN must not reach.
SPREADING = ("aten.convolution.default", False, "plain")


class RunTime(int):
    """An int among a sample's arguments that kernels read from an input when they run, and to which
    the program adds `base`; all of a sample from one."""

    base: int

    def __new__(cls, value: int, base: int = 0):
        made = super().__new__(cls, value)
        made.base = base
        return made

    def __repr__(self):
        return f"{int(self)} at run time"


@dataclass
class Sample:
    """One call of an operator and what it should give.

    Attributes:
        op: the operator's name.
        args: in the order of its schema; arrays stand for tensors, lists may hold some.
        expect: gets the arguments with floats in float64, gives an array or a list of them; or
            the list itself.
        outs: (sizes, dtype) of the results; by default the sizes that `expect` gives and `dtype`.
        dtype: of the results; by default that of the first array.
        constants: indices of arguments that are constants of the program, not inputs.
        rtol: relative L2 error allowed for fp32; integers have to be exact.
        name: tells samples of an operator apart.
        half: whether a variant with fp16 in the place of fp32 makes sense; only where `expect` is
            a function.
        layouts: in which memory orders the inputs are tried.
    """

    op: str
    args: Sequence[Any]
    expect: Callable[..., Any] | Sequence[np.ndarray]
    outs: Sequence[tuple[Sequence[int], str]] | None = None
    dtype: str | None = None
    constants: Sequence[int] = ()
    rtol: float = 1e-6
    name: str = ""
    half: bool = True
    layouts: Sequence[str] = LAYOUTS

    def __str__(self):
        return f"{self.op}[{self.name}]" if self.name else self.op

    def arrays(self) -> list[np.ndarray]:
        """The arrays among the arguments, lists flattened."""
        return [a for arg in self.args for a in (arg if isinstance(arg, list) else [arg])
                if isinstance(a, np.ndarray)]


@dataclass
class Case:
    """A sample as a program: its graph, the bytes of its constants and the arrays to run it on."""

    graph: Graph
    data: bytes
    inputs: list[np.ndarray]
    expected: list[np.ndarray]
    rtol: float

    @property
    def program(self) -> tuple[Graph, bytes, list[np.ndarray]]:
        """What `execute` takes."""
        return self.graph, self.data, self.inputs


def each(function: Callable[[Any], Any], args: Sequence[Any]) -> list[Any]:
    """The arguments with `function` applied to arrays, also those in lists."""
    def apply(value):
        if isinstance(value, list):
            return [apply(item) for item in value]
        return function(value) if isinstance(value, np.ndarray) else value
    return [apply(arg) for arg in args]


def make_case(sample: Sample, half: bool = False, layout: str = "plain") -> Case:
    """The program of a sample; with fp16 in the place of fp32, and in the layout "channels_last"
    with inputs of 3 and more dimensions, permuted, whose dimension 1 is innermost in memory."""
    args = each(_halved, sample.args) if half else list(sample.args)
    expected = sample.expect
    if callable(expected):
        with np.errstate(all="ignore"):
            expected = expected(*each(doubled, args))
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    builder = _CaseBuilder(layout)
    nodes_args = tuple(builder.argument(arg, index in sample.constants)
                       for index, arg in enumerate(args))
    outs = sample.outs
    if outs is None:
        dtype = sample.dtype or str(sample.arrays()[0].dtype)
        outs = [(np.shape(e), dtype) for e in expected]
    outs = tuple(Tensor(tuple(sizes), "float16" if half and dtype == "float32" else dtype)
                 for sizes, dtype in outs)
    nodes = [*builder.nodes, Node(sample.op, nodes_args, outs, "sample")]
    graph = Graph("sample", builder.inputs, list(outs[:len(expected)]), nodes).finish()
    return Case(graph, bytes(builder.constants.data), builder.arrays, expected,
                max(sample.rtol, HALF_TOLERANCE) if half else sample.rtol)


def _halved(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16) if array.dtype == np.float32 else array


def doubled(array: np.ndarray) -> np.ndarray:
    """The array, floats in double precision."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


class _CaseBuilder:
    def __init__(self, layout: str):
        self.layout = layout
        self.inputs: list[Tensor] = []
        self.arrays: list[np.ndarray] = []
        self.nodes: list[Node] = []
        self.constants = Constants()
        # What kernels read an int from, and what it holds
        self.late: tuple[Tensor, Read, int] | None = None

    def argument(self, value: Any, constant: bool) -> Any:
        if isinstance(value, list):
            return [self.argument(item, constant) for item in value]
        if isinstance(value, RunTime):
            return self._late(value)
        if not isinstance(value, np.ndarray):
            return value
        return self._constant(value) if constant else self._input(value)

    def _late(self, value: RunTime) -> RuntimeScalar:
        if self.late is None:
            held = value - value.base
            # The number is neither the first of the input nor the only one.
            tensor = self._input(np.array([7, 8, 9, 10, 11, held, 12], np.int32))
            self.late = tensor, Read(len(self.inputs) - 1, 5), held
        tensor, read, held = self.late
        return RuntimeScalar(value - held, tensor, read)

    def _constant(self, array: np.ndarray) -> Tensor:
        held = self.constants.add(array)
        return Tensor(held.sizes, device_dtype(held.dtype), constant=held.constant)

    def _input(self, array: np.ndarray) -> Tensor:
        name = f"input {len(self.inputs)}"
        if self.layout == "plain" or array.ndim < 3:
            tensor = Tensor(array.shape, str(array.dtype), name=name)
            self.inputs.append(tensor)
            self.arrays.append(array)
            return tensor
        order = channels_last(array.ndim)
        lying = np.ascontiguousarray(array.transpose(order))
        source = Tensor(lying.shape, str(array.dtype), name=name)
        self.inputs.append(source)
        self.arrays.append(lying)
        result = Tensor(array.shape, str(array.dtype))
        back = [order.index(d) for d in range(array.ndim)]
        self.nodes.append(Node("aten.permute_copy.default", (source, back), (result,), name))
        return result


def is_finite(case: Case) -> bool:
    """Whether neither the inputs nor the results hold infinities or NaN, in their precision."""
    half = any(a.dtype == np.float16 for a in case.inputs)
    largest = np.finfo(np.float16 if half else np.float32).max
    return all((np.abs(a) <= largest).all() for a in map(np.asarray, (*case.inputs, *case.expected))
               if a.dtype.kind == "f")


def in_images(members: Sequence[Variant], half: bool, info: Any, target: Target) -> list[Variant]:
    """The samples that become no buffers all the same, and have no infinities where the driver's
    half-precision images make NaN of them."""
    members = [v for v in members if not lower(v.case().graph, target).notes]
    if half and info.driver_id == SWIFTSHADER:
        members = [v for v in members if is_finite(v.case())]
    return members


def check(results: Sequence[np.ndarray], case: Case) -> None:
    """Compares results with a case's expectation; an error says how far off which result is."""
    assert len(results) == len(case.expected)
    for index, (result, expected) in enumerate(zip(results, case.expected)):
        expected = np.asarray(expected)
        assert result.shape == expected.shape, f"result {index}: sizes"
        if result.dtype.kind != "f":
            np.testing.assert_array_equal(result, expected, err_msg=f"result {index}")
            continue
        if result.dtype == np.float16:
            # Beyond the largest half a driver may store it or infinity.
            expected = np.where(np.isfinite(expected), np.clip(expected, -65504, 65504), expected)
            result = np.where(np.isfinite(expected), np.clip(result, -65504, 65504), result)
        else:
            with np.errstate(over="ignore"):
                expected = expected.astype(np.float32).astype(np.float64)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(result[~finite], expected[~finite],
                                      err_msg=f"result {index}: infinities and NaN")
        wanted = expected[finite].astype(np.float64)
        error = result[finite].astype(np.float64) - wanted
        if not error.size:
            continue
        distance = np.linalg.norm(error) / (np.linalg.norm(wanted) or 1.0)
        assert distance <= case.rtol, f"result {index}: relative L2 error {distance:.3g}"
        largest = np.abs(error).max() / (np.abs(wanted).max() or 1.0)
        assert largest <= case.rtol * LARGEST_ERROR, f"result {index}: error {largest:.3g}"


def check_each(members: Sequence[object], cases: Sequence[Case], results: Sequence[np.ndarray],
               check_one: Callable[[Sequence[np.ndarray], Case], None] = check) -> None:
    """Checks the results of several cases, one after the other; an error names the sample."""
    found = iter(results)
    for variant, case in zip(members, cases, strict=True):
        try:
            check_one([next(found) for _ in case.expected], case)
        except AssertionError as error:
            raise AssertionError(f"{variant}: {error}") from error


def check_leaks(results: Sequence[np.ndarray], case: Case) -> None:
    """Makes sure that every element that should be finite is; an error says how many are not."""
    for index, (result, expected) in enumerate(zip(results, case.expected, strict=True)):
        expected = np.asarray(expected)
        if result.dtype.kind == "f" and expected.dtype.kind == "f":
            largest = np.finfo(result.dtype).max
            leaks = ~np.isfinite(result) & (np.abs(expected) < largest)
            assert not leaks.any(), (f"result {index}: {leaks.sum()} of {leaks.size} elements are "
                                     "not finite that do not depend on what is NaN")


def samples() -> Iterator[Sample]:
    """All samples: those of every module in tests/ops/samples."""
    for path in sorted((Path(__file__).parent / "samples").glob("*.py")):
        if path.stem != "__init__":
            module = importlib.import_module(f"samples.{path.stem}")
            yield from module.SAMPLES


@dataclass(frozen=True)
class Variant:
    """A sample in one precision and one layout."""

    sample: Sample
    half: bool
    layout: str

    def __str__(self):
        return f"{self.sample}{'-half' if self.half else ''}" + (
            "" if self.layout == "plain" else f"-{self.layout}")

    @property
    def group(self) -> tuple[str, bool, str]:
        """Its operator, precision and layout."""
        return self.sample.op, self.half, self.layout

    def case(self) -> Case:
        return make_case(self.sample, self.half, self.layout)

    def spoiled(self, number: float = math.nan) -> Variant:
        """The same with a number as one element of its first input of floats, where there is one,
        and where what comes out is known for any input."""
        sample = self.sample
        index = next((i for i, arg in enumerate(sample.args) if i not in sample.constants
                      and isinstance(arg, np.ndarray) and arg.dtype == np.float32 and arg.size),
                     None)
        if index is None or not callable(sample.expect):
            return self
        array = sample.args[index].copy()
        array.flat[array.size // 2] = number
        args = [*sample.args[:index], array, *sample.args[index + 1:]]
        return replace(self, sample=replace(sample, args=args))


def variants() -> Iterator[Variant]:
    """Every sample in the precisions and layouts that differ for it."""
    for sample in samples():
        can_be_half = (sample.half and callable(sample.expect)
                       and any(a.dtype == np.float32 for a in sample.arrays()))
        inputs = replace(sample, args=[arg for index, arg in enumerate(sample.args)
                                       if index not in sample.constants])
        is_deep = any(a.ndim >= 3 for a in inputs.arrays())
        for half in (False, True) if can_be_half else (False,):
            for layout in sample.layouts:
                if layout == "plain" or is_deep:
                    yield Variant(sample, half, layout)


def grouped() -> dict[tuple[str, bool, str], list[Variant]]:
    """The variants by operator, precision and layout."""
    groups: dict[tuple[str, bool, str], list[Variant]] = {}
    for variant in variants():
        groups.setdefault(variant.group, []).append(variant)
    return groups


def merged(cases: Sequence[Case]) -> tuple[Graph, bytes, list[np.ndarray]]:
    """One program of many cases, its constants and inputs, those of one case after the other."""
    graph, data = Graph("samples"), bytearray()
    for case in cases:
        data += bytes(-len(data) % 16)
        tensors = {t for node in case.graph.nodes for t in node.tensors() if t.constant}
        for tensor in tensors:
            tensor.constant = replace(tensor.constant, offset=tensor.constant.offset + len(data))
        data += case.data
        for node in case.graph.nodes:
            node.args = tuple(RuntimeScalar(arg, arg.tensor, replace(
                arg.read, input=arg.read.input + len(graph.inputs)))
                if isinstance(arg, RuntimeScalar) else arg for arg in node.args)
        graph.inputs += case.graph.inputs
        graph.outputs += case.graph.outputs
        graph.nodes += case.graph.nodes
    return graph.finish(), bytes(data), [array for case in cases for array in case.inputs]


def normal(*sizes: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normally distributed fp32 numbers."""
    numbers = np.random.default_rng(seed + math.prod(sizes)).normal(size=sizes)
    return np.asarray(numbers * scale, np.float32)


def integers(*sizes: int, low: int = -9, high: int = 10, seed: int = 0) -> np.ndarray:
    """int32 numbers in [low, high)."""
    return np.random.default_rng(seed + math.prod(sizes)).integers(
        low, high, sizes).astype(np.int32)


def booleans(*sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + math.prod(sizes)).random(sizes) < 0.5


def small(*sizes: int, dtype: type = np.uint8) -> np.ndarray:
    """Small whole numbers of 8 bits."""
    return integers(*sizes, low=0 if dtype == np.uint8 else -9).astype(dtype)


def of_each_dtype(*sizes: int) -> dict[str, np.ndarray]:
    """An array in every dtype whose elements move."""
    return {"float32": normal(*sizes), "int32": integers(*sizes),
            "bool": np.asarray(booleans(*sizes)), "uint8": small(*sizes),
            "int8": small(*sizes, dtype=np.int8)}


def by(sizes: Sequence[int]) -> str:
    """Sizes in the names of samples."""
    return "x".join(map(str, sizes))
