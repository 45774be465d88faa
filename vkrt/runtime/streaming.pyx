# cython: language_level=3
"""Streaming: a thread brings weights to their places in the pool while the device computes.

The plan (`vkrt.plan.stream.streaming`) says which weight may be reloaded when which section is
complete, and which sections wait for which weight. Here are the two sides of that:

* The thread carries out the reloads in order, over and over: for each it waits until the section
  that frees its place is complete on the device, then brings the bytes there.
* `run` submits the sections in order, and the device waits for their weights itself: for the value
  of a timeline semaphore that the thread raises when it has written a weight. Where copies run on
  the device their submission brings that value, and has to come before that of a section which
  waits for it, as both may share a queue.

Another one counts the sections that are complete: section s of run r of n sections is at
base + r * n + s + 1. When something fails, the run that needed it raises, what the pool holds is
forgotten, and counting starts anew from where the device is. Sections that wait by then for what
will not come are let go; what they compute is never seen. Where that fails too, again and again,
they would wait for ever: the device is given up. A run that a signal interrupts raises at
once; the next one, or whoever releases what it used, then waits until the device is at rest.
"""

import threading
from contextlib import suppress

from libc.stdint cimport uint64_t

from vkrt.runtime.host_calls cimport HostStep
from vkrt.vk.command cimport CommandBuffer, Fence
from vkrt.vk.device cimport Device
from vkrt.vk.interruption cimport check_interruption
from vkrt.vk.timeline_semaphore cimport TimelineSemaphore, submit_in_order

from vkrt.errors import CancelledError, DeviceLostError, VkrtError

# So often, in nanoseconds, a wait for the device looks whether it should go on.
cdef uint64_t PATIENCE = 50_000_000
# So many waits of that length a device is given to end that cannot be let go.
cdef int STRANDED_WAITS = 20


cdef class Event:
    """Wakes the one thread that waits for it, and does not forget if none does yet.

    What changes is guarded by the GIL, which nothing here lets go of between looking and waiting.
    A `threading.Condition` is made of Python code: a signal's handler that raises within it can
    leave its lock taken. A lock's `acquire` is interrupted without a trace.
    """

    def __cinit__(self):
        self.lock = threading.Lock()
        self.lock.acquire()

    cdef int set(self) except -1:
        if self.lock.locked():
            self.lock.release()
        return 0

    cdef int wait(self) except -1:
        self.lock.acquire()
        return 0


cdef class Streamer:
    """Runs the sections of a plan with streamed weights.

    Args:
        device: an open device.
        plan: a `ReloadPlan`.
        uploader: brings a weight to its place: `HostUploader` or `StagingUploader`; closed with
            this object.
        keeps: whether the last section changes what is kept from run to run: it is then submitted
            when all weights have arrived, so that a run which fails changes nothing.
    """

    def __cinit__(self, Device device, plan, uploader, bint keeps=False):
        self.device = device
        self.uploader = uploader
        self.arrivals = uploader.arrivals
        self.host_signaled = uploader.host_signaled
        self.prefetches = plan.prefetches
        self.keeps = keeps
        self.sections = len(plan.needed)
        self.needed = list(plan.needed)
        self.reloads = plan.reloads
        self.values = [0] * len(self.reloads)
        self.go, self.news = Event(), Event()
        self.thread = None
        self.error = None
        self.computed = TimelineSemaphore(device)
        self.finished = Fence(device)

    def start(self):
        """Starts the thread, which begins with what the first run needs first."""
        self.thread = threading.Thread(target=self._work, name="vkrt-stream", daemon=True)
        self.thread.start()

    def _work(self):
        """The thread: one epoch after the other, until it is to stop."""
        while True:
            while self.idle and not self.stopping:
                self.go.wait()
            if self.stopping:
                return
            try:
                self._carry_on()
            except BaseException as error:  # for the run that needs it
                self.error = error
                self._let_go()
            self.idle = True
            self.news.set()

    cdef int _carry_on(self) except -1:
        """Reloads, in order, until this epoch ends."""
        cdef uint64_t number = 0
        cdef uint64_t run
        cdef int place
        cdef int count = len(self.reloads)
        while True:
            run, place = number // count, number % count
            reload = self.reloads[place]
            if not self._may_start(place, run, reload.ahead, reload.after):
                return 0
            upload = self.uploader.upload(place)
            if self.stopping or self.ending:
                return 0
            number += 1
            self.arrived = number
            if self.host_signaled:
                self._signal(self.first + number)
            else:
                self.values[place] = upload
            self.news.set()

    cdef int _let_go(self) except -1:
        """Lets the device go on where it waits for reloads that will not come. Raises nothing: it
        is `stranded` where that fails."""
        try:
            if self.host_signaled:
                self._signal(self.first + self.started * len(self.reloads))
            self.stranded = False
        except BaseException:
            self.stranded = True
        return 0

    cdef int _free(self, int* failures) except -1:
        """For waits: tries again to let a stranded device go on.

        Args:
            failures: of this wait, counted.

        Raises:
            DeviceLostError: the device is given up.
        """
        if self.stranded:
            self._let_go()
            failures[0] += 1
            if self.stranded and failures[0] >= STRANDED_WAITS:
                self.device.give_up("the signal that streamed weights have arrived cannot be given")
        return 0

    cdef int _signal(self, uint64_t value) except -1:
        # Vulkan does not allow to signal a value a second time.
        if value > self.last_value:
            self.arrivals.raise_to(value)
            self.last_value = value
        return 0

    cdef bint _may_start(self, int place, uint64_t run, int ahead, int after) except -1:
        """Waits until a reload may start; False when the epoch ends instead."""
        cdef uint64_t value
        cdef int reached = 0
        if run < <uint64_t>ahead:
            return not (self.stopping or self.ending)
        value = self.base + (run - ahead) * self.sections + after + 1
        if self.started > run - ahead:
            reached = self.computed.reached(value, 0)
        if not reached and self.prefetches:
            self.uploader.prefetch(place)
        while self.started <= run - ahead and not self.stopping and not self.ending:
            self.go.wait()
        while not reached:
            if self.stopping or self.ending:
                return False
            with nogil:
                reached = self.computed.reached(value, PATIENCE)
        return True

    def run(self, sections, run_kernel):
        """Runs all sections once.

        Args:
            sections: for each section of the plan its command buffer, and a host step or None.
            run_kernel: see `ComputeGraph.run`.

        Raises:
            OSError, FormatError: a weight could not be read; the next run tries again.
            VulkanError: the device failed.
        """
        cdef uint64_t submitted = 0
        cdef uint64_t needed = 0
        cdef int number
        cdef bint skipping = False
        if self.broken:
            self._restart()
        self.broken = True
        try:
            run = self.started
            self.started += 1
            self.go.set()
            for number, (commands, host_step) in enumerate(sections):
                needed = run * len(self.reloads) + self.needed[number]
                submitted = self.base + run * self.sections + number + 1
                self._submit(commands, number, needed, submitted)
                self.submitted = submitted
                if host_step is not None:
                    self._complete(submitted)
                    self._check(needed)
                    # What the device does in a branch that is not taken nobody reads, and the
                    # weights come in one order.
                    skipping = (<HostStep>host_step).run(run_kernel, skipping)
            self._finish()
            self._check(needed)
            self.broken = False
        except CancelledError:
            raise
        except DeviceLostError:
            with suppress(DeviceLostError):  # which says no more than the first one
                self._restart()
            raise
        except (VkrtError, OSError, MemoryError):
            self._restart()
            raise
        # Anything else comes from a signal's handler, `cancel` or a host kernel: what was submitted
        # goes on with its weights until `rest`.

    def rest(self):
        """Waits until the device is done with a run that was interrupted."""
        if self.broken:
            self._restart()

    cdef int _check(self, uint64_t number) except -1:
        """Raises what went wrong with one of so many reloads."""
        if self.arrived < number:
            raise self.error or RuntimeError("the transfer thread has ended")
        return 0

    cdef int _arrival(self, uint64_t number) except -1:
        """Waits until so many reloads have been carried out; raises what went wrong with one."""
        while self.arrived < number and not self.idle:
            self.news.wait()
        return self._check(number)

    cdef int _submit(self, CommandBuffer commands, int section, uint64_t needed,
                     uint64_t value) except -1:
        """Submits a section that needs so many reloads of this epoch."""
        cdef int mine = self.needed[section]
        cdef TimelineSemaphore arrivals = self.arrivals if mine else None
        cdef uint64_t arrival = self.first + needed
        cdef bint last = section == self.sections - 1
        cdef Fence fence = self.finished if last else None
        if not self.host_signaled:
            self._arrival(needed)
            arrival = self.values[mine - 1] if mine else 0
        elif self.keeps and last:
            self._arrival(needed)
        elif self.error is not None:
            # Raised by `_check` if it is needed; nobody would let this section go.
            self._check(needed)
        with nogil:
            submit_in_order(commands, arrivals, arrival, self.computed, value, False, fence)
        self.finishing = last
        return 0

    cdef int _complete(self, uint64_t value) except -1:
        cdef int reached = 0
        cdef int failures = 0
        while True:
            with nogil:
                reached = self.computed.reached(value, PATIENCE)
            if reached:
                return 0
            check_interruption()
            self._free(&failures)

    cdef int _finish(self) except -1:
        """Waits for the last section of a run."""
        # By a fence: where timelines are the driver's own work, one that is waited for wakes its
        # waiter at every value. The host awake for a moment at every section made a system with two
        # processors put the driver's thread behind the transfer thread on one of them, and what
        # should overlap took turns.
        cdef int failures = 0
        while not self.finished.wait(PATIENCE / 1e9):
            self._free(&failures)
        self.finishing = False
        return 0

    cdef int _restart(self) except -1:
        """Ends the epoch: device and thread come to rest, and everything is reloaded.

        Interrupted itself, it is done again before the next run.
        """
        self.ending = True
        self.go.set()
        while not self.idle:
            self.news.wait()
        self._come_to_rest()
        self.first = self.last_value
        if self.host_signaled:
            # Layers of validation take a value that was skipped for one that is to come.
            self.arrivals = self.uploader.renew()
            self.first = self.last_value = 0
        self.error = None
        self.started = self.arrived = 0
        self.ending = self.idle = self.broken = False
        self.go.set()
        return 0

    cdef int _come_to_rest(self) except -1:
        """Lets the device finish what was submitted, and waits for it. The thread rests."""
        self._let_go()
        self.uploader.settle()
        if self.submitted > self.base:
            self._complete(self.submitted)
            self.base = self.submitted
        if self.finishing:
            self._finish()
        return 0

    def close(self):
        """Ends the thread; idempotent. No run may be in progress."""
        self.stopping = True
        self.go.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        try:
            # Unless the device has failed, whoever closes has called `rest` before.
            if self.broken:
                with suppress(DeviceLostError):  # a device that is lost is at rest
                    self._come_to_rest()
                self.broken = False
        finally:
            self.uploader.close()
            self.finished.close()
            self.computed.close()
