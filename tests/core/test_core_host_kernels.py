"""Kernels of the host's and branches, in compiled programs on the core alone."""

import ctypes
from contextlib import closing

import numpy as np
import pytest
from core_alone import Error, core
from core_build import needs_build
from core_runner import opened
from support import MODELS, sorting_on_host

import vkrt
from vkrt.compiled import compiler
from vkrt.compiled.file import read
from vkrt.memory.source import Source
from vkrt.ops.host.run import run_kernel
from vkrt.work.host_arguments import ReadArgument

pytestmark = [pytest.mark.driver, needs_build]


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}], ids=str)
@pytest.mark.parametrize("name", ["branches", "views"])
def test_branches(name, options, compiled_of):
    """Whatever is taken."""
    out = compiled_of(name, **options)
    chance = np.random.default_rng(3)
    with vkrt.load(out) as program, opened(out) as runner:
        infos = program.metadata().inputs
        for scale in (-9, -1, 0, 1, 9):
            inputs = [(chance.random(info.sizes) * scale).astype(info.dtype) for info in infos]
            runner.check_run(inputs, list(map(np.asarray, program.run(*inputs))))


class Range(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("storage", "offset", "nbytes")]


class Execution(ctypes.Structure):
    """The beginning of one, as vkrt/core/execution.pxd has it."""

    _fields_ = [("device", ctypes.c_void_p), ("records", ctypes.c_void_p),
                ("plan", ctypes.c_void_p), ("padded", ctypes.c_int), ("kernels", ctypes.c_void_p),
                ("handles", ctypes.c_byte)]


def execution_of(runner):
    return Execution.from_address(core().vkrt_execution_of(runner.method))


RUN_HOST_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int,
                                   ctypes.POINTER(Error))


class HostKernels:
    """Numpy's kernels behind the submissions of a plan.

    Attributes:
        execution: the core's, once there is one.
        ran: the names of what was run.
        status: what they end with.
    """

    def __init__(self, plan):
        core().vkrt_host_address.restype = ctypes.c_void_p
        self.plan = plan
        self.execution, self.ran, self.status = None, [], 0
        self.run_kernel = RUN_HOST_KERNEL(self.run)

    def array(self, place):
        part = Range(place.range.storage, place.range.offset, place.range.nbytes)
        handles = ctypes.byref(self.execution, Execution.handles.offset)
        address = core().vkrt_host_address(handles, ctypes.byref(part))
        memory = (ctypes.c_byte * place.nbytes).from_address(address)
        return np.frombuffer(memory, place.dtype).reshape(place.sizes)

    def run(self, _data, submission, skipped, _error):
        kernel = self.plan.submissions[submission].host
        self.ran.append(kernel.name)
        assert not skipped
        reads = [self.array(place) for place in kernel.reads]
        args = tuple(reads[arg.read] if isinstance(arg, ReadArgument) else arg
                     for arg in kernel.args)
        run_kernel(kernel.name, args, tuple(self.array(place) for place in kernel.writes))
        return self.status


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}], ids=str)
def test_kernels_of_the_host(options, compiled_of, monkeypatch):
    """They run behind their submissions; where a host has none they are refused by name."""
    monkeypatch.setattr(compiler, "_check_host", lambda *_: None)
    with sorting_on_host():
        out = compiled_of("places", **options)
        with vkrt.load(MODELS / "places.pte", **options) as program:
            inputs = [info.example() for info in program.metadata().inputs]
            expected = [np.asarray(value) for value in program.run(*inputs)]
    with closing(Source.open(out)) as source:
        compiled = read(source).read()
    plan = compiled.targets[0].methods[0].largest.executable.execution
    names = [submission.host.name for submission in plan.submissions if submission.host]
    error, runner = Error(), ctypes.c_void_p()
    assert core().vkrt_open_runner(str(out).encode(), b"forward", None, ctypes.byref(runner),
                                   ctypes.byref(error)) == 6
    assert names and error.text.decode().startswith(f"{names[0]} runs on the host")
    kernels = HostKernels(plan)
    with opened(out, run_kernel=kernels.run_kernel) as bare:
        kernels.execution = execution_of(bare)
        for _ in range(2):
            kernels.ran.clear()
            bare.check_run(inputs, expected)
            assert kernels.ran == names
        # What a kernel says ends the run, and no later one.
        kernels.status = 3
        assert bare.run() == 3
        kernels.status = 0
        bare.check_run(inputs, expected)
