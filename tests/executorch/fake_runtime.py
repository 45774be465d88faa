"""A stand-in for ExecuTorch's runtime: `fake_runtime.cpp`, built and driven from here.

It runs a method instruction by instruction: delegates through the backend that vkrt registers,
with values as they lie in the real runtime's memory, and a few kernels in numpy.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support import need_command, path_of

from vkrt import pte
from vkrt.compiler.description import Description

SOURCE = Path(__file__).with_name("fake_runtime.cpp")
TENSOR, INT = 1, 4


def build(folder: Path) -> Path:
    """The stand-in as a shared library."""
    library = folder / "libfake_runtime.so"
    subprocess.run([need_command("c++"), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared",
                    "-fPIC", "-o", library, SOURCE], check=True)
    return library


class _TensorImpl(ctypes.Structure):
    _fields_ = [("sizes", ctypes.POINTER(ctypes.c_int32)),
                ("dim_order", ctypes.POINTER(ctypes.c_uint8)),
                ("strides", ctypes.POINTER(ctypes.c_int32)), ("data", ctypes.c_void_p),
                ("dim", ctypes.c_ssize_t), ("numel", ctypes.c_ssize_t),
                ("numel_bound", ctypes.c_size_t), ("dtype", ctypes.c_int8),
                ("dynamism", ctypes.c_uint8), ("device", ctypes.c_int16)]


class _Payload(ctypes.Union):
    _fields_ = [("as_int", ctypes.c_int64), ("as_tensor", ctypes.POINTER(_TensorImpl))]


class _EValue(ctypes.Structure):
    _fields_ = [("payload", _Payload), ("tag", ctypes.c_uint32)]


class Value:
    """A value of a method: a tensor with memory for its largest sizes, or a number."""

    def __init__(self, meta: Any):
        self.struct = _EValue()
        self.meta = meta
        if not isinstance(meta, pte.TensorMeta):
            self.struct.tag = INT
            self.struct.payload.as_int = meta or 0
            return
        rank = len(meta.sizes)
        self.memory = np.zeros(max(meta.numel, 1), meta.dtype)
        self._sizes = (ctypes.c_int32 * max(rank, 1))(*meta.sizes)
        self._strides = (ctypes.c_int32 * max(rank, 1))()
        self._order = (ctypes.c_uint8 * max(rank, 1))(*meta.dim_order)
        self._impl = _TensorImpl(self._sizes, self._order, self._strides,
                                 self.memory.ctypes.data, rank, meta.numel, meta.numel,
                                 meta.scalar_type, meta.dynamism)
        self.struct.tag = TENSOR
        self.struct.payload.as_tensor = ctypes.pointer(self._impl)
        self.resize(meta.sizes)

    def resize(self, sizes: Sequence[int]) -> None:
        stride = 1
        for dim in reversed(range(len(sizes))):
            self._sizes[dim], self._strides[dim] = sizes[dim], stride
            stride *= sizes[dim]
        self._impl.numel = stride

    def set(self, value: Any) -> None:
        if self.struct.tag == INT:
            self.struct.payload.as_int = value
            return
        self.resize(value.shape)
        self.memory[:value.size] = value.ravel()

    def get(self) -> Any:
        if self.struct.tag == INT:
            return self.struct.payload.as_int
        sizes = tuple(self._sizes[d] for d in range(self._impl.dim))
        return self.memory[:self._impl.numel].reshape(sizes).copy()


class Refused(Exception):
    """The backend has answered with a code."""

    def __init__(self, code: int):
        super().__init__(hex(code))
        self.code = code


KERNELS = {"aten::cumsum.out": lambda x, dim, _: np.cumsum(x, dim, dtype=x.dtype)}


class Method:
    """A method of a program in the stand-in. A context manager; its end destroys the delegates.

    Args:
        path: of the program, or its name in tests/models.
        drop: keys of constants that the runtime shall not have.
        damage: changes the delegates' bytes before they are loaded.
        declared: whether delegates hear that shapes are dynamic.
        with_map: whether there is a map of constants.
    """

    def __init__(self, fake: Fake, path: str | Path, name: str = "forward",
                 drop: Sequence[str] = (), damage: Any = bytes, declared: bool = True,
                 with_map: bool = True):
        self._fake = fake
        description = Description(path_of(path))
        program = description.program
        plan = program.plan(name)
        assert plan is not None
        self.plan = plan
        self.values = [Value(value) if isinstance(value, (pte.TensorMeta, int)) else value
                       for value in plan.values]
        self.loaded: list[Any] = []
        try:
            with memoryview(description.source) as data:
                for reference in plan.delegates:
                    assert reference.id == "VulkanBackend"
                    made = fake.library.fake_new()
                    self.loaded.append(made)
                    for key, span in program.named_data.items():
                        if key not in drop:
                            fake.library.fake_constant(
                                made, key.encode(), bytes(data[span.offset:span.end]), span.nbytes)
                    blob = damage(bytes(data[reference.span.offset:reference.span.end]))
                    dynamic = declared and "require_dynamic_shapes" in reference.options
                    code = fake.library.fake_init(
                        made, blob, len(blob), b"require_dynamic_shapes" if dynamic else None, 1,
                        int(with_map))
                    if code:
                        raise Refused(code)
        except BaseException:
            self.close()
            raise
        finally:
            description.close()

    def run(self, *inputs: np.ndarray) -> list[Any]:
        for index, value in zip(self.plan.inputs, inputs, strict=True):
            self.values[index].set(value)
        for instruction in self.plan.instructions:
            if isinstance(instruction, pte.DelegateCall):
                self.call(instruction.delegate, [self.values[i] for i in instruction.args])
            elif isinstance(instruction, pte.KernelCall):
                self._kernel(instruction)
        return [self.values[i].get() for i in self.plan.outputs]

    def call(self, delegate: int, values: Sequence[Value]) -> None:
        pointers = (ctypes.POINTER(_EValue) * len(values))(
            *(ctypes.pointer(value.struct) for value in values))
        code = self._fake.library.fake_execute(self.loaded[delegate], pointers, len(values))
        if code:
            raise Refused(code)

    def _kernel(self, call: pte.KernelCall) -> None:
        function = KERNELS[self.plan.operators[call.op]]
        *inputs, out, _ = call.args
        result = function(*(self.values[i].get() if isinstance(self.values[i], Value)
                            else self.values[i] for i in inputs))
        self.values[out].set(result)

    @property
    def blobs_lent(self) -> int:
        """How many blobs the delegates have not given back."""
        return sum(self._fake.library.fake_blobs_lent(made) for made in self.loaded)

    def close(self) -> None:
        for made in self.loaded:
            self._fake.library.fake_delete(made)
        self.loaded = []

    def __enter__(self) -> Method:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


class Fake:
    """The library, and what it counts."""

    def __init__(self, path: Path):
        self.path = path
        # ctypes lets go of the GIL for each call, and the backend takes it.
        self.library = ctypes.CDLL(str(path))
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
        for name, result, arguments in (
                ("fake_new", pointer, ()),
                ("fake_constant", None, (pointer, ctypes.c_char_p, ctypes.c_char_p, size)),
                ("fake_init", number, (pointer, ctypes.c_char_p, size, ctypes.c_char_p,
                                       ctypes.c_char, ctypes.c_int)),
                ("fake_execute", number, (pointer, pointer, size)),
                ("fake_blobs_lent", ctypes.c_int, (pointer,)),
                ("fake_delete", None, (pointer,))):
            function = self.library[name]
            setattr(self.library, name, function)
            function.restype, function.argtypes = result, arguments

    def load(self, *args: Any, **options: Any) -> Method:
        return Method(self, *args, **options)

    def lent(self) -> tuple[int, int, int]:
        """Constants that are lent out now, that were at most, and all since the last call."""
        counts = tuple(ctypes.c_int() for _ in range(3))
        self.library.fake_lent(*map(ctypes.byref, counts))
        now, most, all_of_them = (count.value for count in counts)
        return now, most, all_of_them
