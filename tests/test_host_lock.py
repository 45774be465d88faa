"""The lock of a host whose queue vkrt uses: every submission is under it, and nothing else is."""

import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import numpy as np
import pytest
from host_device import open_host, spied
from support import MODELS, in_threads

import vkrt
from vkrt.errors import InputError
from vkrt.vk.device import Device

pytestmark = pytest.mark.driver
MLP = MODELS / "mlp.pte"
BUFFERS = MODELS / "buffers.pte"
X = np.ones((3, 30), np.float32)


class Recorder:
    """A lock that says who holds it, and a driver that says what is called meanwhile.

    Attributes:
        calls: (name of the function, whether the calling thread held the lock).
        taken: how often it was.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.holder = None
        self.taken = 0
        self.calls = []
        submit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                                  ctypes.c_uint64)
        wait = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                                ctypes.c_uint32, ctypes.c_uint64)
        self.entry, self.kept = spied({
            b"vkQueueSubmit": self.noting("submit", submit),
            b"vkWaitForFences": self.noting("wait", wait),
            **{name: self.noting(name.decode(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p))
               for name in (b"vkQueueWaitIdle", b"vkDeviceWaitIdle")}})

    def noting(self, name, kind):
        def make(address):
            real = kind(address)

            def called(*args):
                self.calls.append((name, self.holder == threading.get_ident()))
                return real(*args)
            return kind(called)
        return make

    def __enter__(self):
        self.lock.acquire()
        self.holder = threading.get_ident()
        self.taken += 1

    def __exit__(self, *exception):
        self.holder = None
        self.lock.release()

    def check(self):
        """Every submission was made under the lock, each with a hold of its own."""
        submissions = [held for name, held in self.calls if name == "submit"]
        assert submissions and all(submissions)
        assert len(submissions) == self.taken
        assert not any(held for name, held in self.calls if name != "submit")
        assert {name for name, _ in self.calls} <= {"submit", "wait"}


@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_every_submission_is_under_the_lock(weights):
    recorder = Recorder()
    with open_host("timelineSemaphore") as host:
        with Device.adopt(*host.handles, 0, features=["timelineSemaphore"], lock=recorder,
                          get_instance_proc_addr=recorder.entry) as device:
            with vkrt.load(MLP, device, weights=weights) as program:
                first, = program.run(X)
                program.profile(X, repeat=1, clock="device" if weights == "stream" else "host")
                in_threads(*[partial(program.run, X)] * 3)
            with vkrt.load(BUFFERS, device) as program:
                program.run(np.zeros(program.metadata().inputs[0].sizes, np.float32))
                program.load_state(program.save_state())
                program.reset_state()
        recorder.check()
    with vkrt.load(MLP) as program:
        assert np.array_equal(program.run(X)[0], first)


@pytest.mark.parametrize("first", ["program", "device"])
def test_semaphores_wait_for_the_queue_whoever_is_closed_first(first):
    """A driver may look at a semaphore once more behind the fence of its last submission, so an
    empty submission is waited for before the semaphore is destroyed."""
    recorder = Recorder()
    with open_host("timelineSemaphore") as host, \
            Device.adopt(*host.handles, 0, features=["timelineSemaphore"], lock=recorder,
                         get_instance_proc_addr=recorder.entry) as device:
        program = vkrt.load(MLP, device, weights="stream")
        program.run(X)
        recorder.calls.clear()
        if first == "device":
            device.close()
        program.close()
        assert [name for name, _ in recorder.calls[-2:]] == ["submit", "wait"]


def test_vkrt_waits_for_the_host_and_the_host_for_vkrt():
    lock = threading.Lock()
    with open_host() as host, Device.adopt(*host.handles, 0, lock=lock) as device, \
            vkrt.load(MLP, device) as program, ThreadPoolExecutor() as pool:
        with lock:
            run = pool.submit(program.run, X)
            assert not wait([run], 0.2).done
        run.result(60)
        assert not lock.locked()


def test_the_lock_may_be_two_functions_of_c():
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    calls = []
    lock = function(lambda data: calls.append(("lock", data)))
    unlock = function(lambda data: calls.append(("unlock", data)))
    addresses = [ctypes.cast(each, ctypes.c_void_p) for each in (lock, unlock)]
    with open_host() as host, \
            Device.adopt(*host.handles, 0, lock=(*addresses, 42)) as device, \
            vkrt.load(MLP, device) as program:
        program.run(X)
    assert calls and calls == [("lock", 42), ("unlock", 42)] * (len(calls) // 2)


def test_an_error_of_the_lock_ends_the_run_and_the_next_one_works(monkeypatch):
    class Refusing:
        why = None

        def __enter__(self):
            if self.why == "taken":
                raise RuntimeError("not now")

        def __exit__(self, *exception):
            if self.why == "given back":
                raise RuntimeError("too late")

    heard = []
    lock = Refusing()
    with open_host() as host, Device.adopt(*host.handles, 0, lock=lock) as device, \
            vkrt.load(MLP, device) as program:
        first, = program.run(X)
        lock.why = "taken"
        with pytest.raises(RuntimeError, match="not now"):
            program.run(X)
        lock.why = "given back"
        monkeypatch.setattr(sys, "unraisablehook", lambda told: heard.append(str(told.exc_value)))
        assert np.array_equal(program.run(X)[0], first)
        lock.why = None
        assert np.array_equal(program.run(X)[0], first)
    assert heard and set(heard) == {"too late"}


@pytest.mark.parametrize("bad", ["lock", (1, 2), (0, 1, 2)])
def test_what_is_no_lock_is_refused(bad):
    with open_host() as host, pytest.raises(InputError, match="lock"):
        Device.adopt(*host.handles, 0, lock=bad)
