"""Semaphores of the host's, before a run and behind it."""

import pytest
from host_buffers import TIMELINE, HostBuffers, arrays_of, hosted
from host_device import open_host
from support import MODELS, raising, same_bits

import vkrt
from vkrt import Semaphore
from vkrt.ops.host import run as host_kernels
from vkrt.vk.device import Device

pytestmark = pytest.mark.driver
SUPERRES = MODELS / "superres_small.pte"


def test_binary_semaphores():
    with hosted("superres_small") as (host, program):
        inputs = arrays_of(program)
        expected = program.run(*inputs)
        before, after = host.semaphore(), host.semaphore()
        for offset in (256, 4):
            given = HostBuffers(host, inputs, offset).fill()
            made = HostBuffers(host, expected, offset)
            host.submit(signal=before)
            program.run_async(*given.buffers, out=made.buffers, wait=[Semaphore(before)],
                              signal=[Semaphore(after)])
            host.submit(wait=after)
            made.check()


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}])
def test_timelines(options):
    with hosted("superres_small", **options) as (host, program):
        inputs = arrays_of(program)
        given, made = HostBuffers(host, inputs), HostBuffers(host, program.run(*inputs))
        line = host.semaphore(timeline=True)
        run = program.run_async(*given.buffers, out=made.buffers, wait=[Semaphore(line, 1)],
                                signal=[Semaphore(line, 2)])
        with pytest.raises(TimeoutError):
            run.result(0.05)
        assert not run.done() and host.value(line) == 0
        given.fill()
        host.signal(line, 1)
        run.result(60)
        assert run.done() and host.value(line) == 2
        made.check()


def test_binary_semaphores_where_the_host_has_a_part():
    """Nobody may wait for one before it is submitted, and a part of the run comes later."""
    with hosted("branches") as (host, program):
        *choices, x = arrays_of(program)
        given, made = HostBuffers(host, [x]).fill(), HostBuffers(host, program.run(*choices, x))
        after = host.semaphore()
        run = program.run_async(*choices, *given.buffers, out=made.buffers,
                                signal=[Semaphore(after)])
        assert run.done()
        host.submit(wait=after)
        made.check()


def test_a_run_that_fails_signals_all_the_same(on_host, monkeypatch):
    with hosted("branches") as (host, program):
        *choices, x = arrays_of(program)
        expected = program.run(*choices, x)
        line = host.semaphore(timeline=True)
        given = HostBuffers(host, [x], 4).fill()
        with monkeypatch.context() as patch:
            patch.setattr(host_kernels, "run_kernel", raising(ArithmeticError))
            run = program.run_async(*choices, *given.buffers, signal=[Semaphore(line, 1)])
            with pytest.raises(ArithmeticError):
                run.result(60)
        host.submit()
        assert host.value(line) == 1
        same_bits(program.run(*choices, *given.buffers), expected)


def test_timelines_take_the_feature():
    with open_host(TIMELINE) as host, Device.adopt(*host.handles, 0) as device, \
            vkrt.load(SUPERRES, device) as program:
        line = host.semaphore(timeline=True)
        inputs = arrays_of(program)
        with pytest.raises(vkrt.UnsupportedError, match="timelineSemaphore"):
            program.run_async(*inputs, signal=[Semaphore(line, 1)])
        program.run(*inputs)
