"""Programs of the C library on a host's device, in the tests' process: submissions by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from compiled_programs import MAX_RANK, CompiledProgram, call, loaded
from host_buffers import HostBuffers

from vkrt.work.handles import address_of


class HostDevice(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("instance", ctypes.c_void_p),
                ("physical_device", ctypes.c_void_p), ("device", ctypes.c_void_p),
                ("queue", ctypes.c_void_p), ("queue_family", ctypes.c_uint32),
                ("features", ctypes.POINTER(ctypes.c_char_p)), ("feature_count", ctypes.c_size_t),
                ("get_instance_proc_addr", ctypes.c_void_p), ("lock", ctypes.c_void_p),
                ("unlock", ctypes.c_void_p), ("lock_data", ctypes.c_void_p)]


class Options(ctypes.Structure):
    """As far as they are set here; what a host does not know of is as ever."""

    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p),
                ("memory_budget", ctypes.c_uint64), ("smallest_memory", ctypes.c_int),
                *((name, ctypes.c_char_p) for name in (
                    "storage", "weights", "prefetch", "packed", "winograd", "fusions",
                    "specialize", "pipeline_cache")),
                ("data_paths", ctypes.c_void_p), ("data_path_count", ctypes.c_size_t),
                ("progress", ctypes.c_void_p), ("progress_data", ctypes.c_void_p),
                ("host_device", ctypes.POINTER(HostDevice))]


class Buffer(ctypes.Structure):
    _fields_ = [("buffer", ctypes.c_uint64), ("offset", ctypes.c_uint64),
                ("nbytes", ctypes.c_uint64), ("has_sizes", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("sizes", ctypes.c_int64 * MAX_RANK)]


class Semaphore(ctypes.Structure):
    _fields_ = [("semaphore", ctypes.c_uint64), ("value", ctypes.c_uint64),
                ("is_timeline", ctypes.c_int32)]


class Submission(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("inputs", ctypes.POINTER(Buffer)),
                ("input_count", ctypes.c_size_t), ("outputs", ctypes.POINTER(Buffer)),
                ("output_count", ctypes.c_size_t), ("waits", ctypes.POINTER(Semaphore)),
                ("wait_count", ctypes.c_size_t), ("signals", ctypes.POINTER(Semaphore)),
                ("signal_count", ctypes.c_size_t)]


def semaphore(handle: Any, value: int | None = None) -> Semaphore:
    return Semaphore(address_of(handle, "semaphore"), value or 0, value is not None)


class HostValues(HostBuffers):
    """Its `buffers` are as the library has such."""

    def __init__(self, host: Any, arrays: Sequence[np.ndarray], offset: int = 256,
                 has_sizes: bool = True):
        super().__init__(host, arrays, offset)
        self.buffers = [
            Buffer(address_of(made.handle, "buffer"), offset, size, has_sizes, array.ndim,
                   (ctypes.c_int64 * MAX_RANK)(*array.shape))
            for made, size, array in zip(self.hosts, self.sizes, arrays)]


class HostProgram(CompiledProgram):
    """A program on the device of a host's."""

    def submit(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], *,
               waits: Sequence[Semaphore] = (), signals: Sequence[Semaphore] = (),
               state: Any = None, method: str = "forward") -> int:
        """Begins a run; the bytes that the device copies."""
        copied = ctypes.c_uint64()
        words = [word for kind, values in ((Buffer, inputs), (Buffer, outputs), (Semaphore, waits),
                                           (Semaphore, signals))
                 for word in ((kind * len(values))(*values), len(values))]
        call("vkrt_submit", self.handle, method, state,
             ctypes.byref(Submission(ctypes.sizeof(Submission), *words)), ctypes.byref(copied))
        return copied.value

    def check_run(self, given: HostValues, made: HostValues, **words: Any) -> None:
        """A run that is waited for; it has to give the outputs that `made` is there for."""
        made.clear()
        self.submit(given.buffers, made.buffers, **words)
        self.wait()
        made.check()

    def wait(self, method: str = "forward") -> None:
        call("vkrt_wait", self.handle, method)

    def release(self) -> None:
        call("vkrt_release_buffers", self.handle)


@contextmanager
def opened_on(host: Any, path: Path, *features: str, **words: str) -> Iterator[HostProgram]:
    """A program on a host's device, closed at the end; nothing of a compiled one is left then,
    unless the device was lost.

    Args:
        words: options of `vkrt_options` that are texts.
    """
    enabled = [name.encode() for name in (*host.always, *features)]
    names = (ctypes.c_char_p * len(enabled))(*enabled)
    handles = (address_of(handle, "handle") for handle in host.handles)
    device = HostDevice(ctypes.sizeof(HostDevice), *handles, 0, names, len(enabled))
    options = Options(ctypes.sizeof(Options), host_device=ctypes.pointer(device),
                      **{name: word.encode() for name, word in words.items()})
    # Python's objects are counted once the library has joined it, others' too.
    with loaded(path, ctypes.byref(options), counts=path.suffix == ".vkx") as handle:
        yield HostProgram(handle)
