"""StateMemory: what a method keeps from run to run, as device memory and handles.

A method has one, and more where several states take turns over the same weights. It lies in the
device's own memory. Where the host does not see that, values go there inside of commands, which
takes no staging, and come back through a small buffer. The core does it (`vkrt.core.states`).
"""

cimport cython

from vkrt.core cimport states as core
from vkrt.core.error cimport Error
from vkrt.core.loading cimport Loading, loading_by
from vkrt.core.state_values cimport load_states, save_states
from vkrt.memory.reader cimport Reader
from vkrt.runtime.reading cimport check_reading
from vkrt.vk.check cimport check_status
from vkrt.vk.interruption cimport poll_interruption


@cython.no_gc_clear
cdef class StateMemory:
    """One value of everything that a method keeps from run to run.

    Args:
        device: an open device.
        allocator: whose account the memory is on.
        plan: the `StatePlan` of the method.
        storages: all of the method's, by number.

    Attributes:
        inconsistent: whether a run that failed has left it half changed.
    """

    def __cinit__(self, Device device not None, Allocator allocator not None, plan, storages):
        cdef Error error
        self.device = device
        self.allocator = allocator
        self.plan = plan
        self.rows = Rows(storages, states=plan)
        self.handles = Handles(device, self.rows)
        check_status(core.open_states(&allocator.core, &self.rows.records, self.rows.states,
                                      &self.handles.core, NULL, &self.core, &error), &error)

    @property
    def inconsistent(self):
        return bool(self.core.inconsistent)

    @inconsistent.setter
    def inconsistent(self, bint inconsistent):
        self.core.inconsistent = inconsistent

    @property
    def nbytes(self):
        """Bytes of device memory."""
        return self.plan.nbytes

    def allocate(self):
        """Allocates the memory, if it is not there yet."""
        cdef Error error
        cdef int status
        with nogil:
            status = core.allocate_states(&self.core, &error)
        check_status(status, &error)

    def reset(self, Reader reader not None):
        """Gives every state the value that the file has; the device is not at work.

        Args:
            reader: a `vkrt.memory.reader.Reader` of the program's sources.
        """
        cdef Loading loading = loading_by(&reader.reader)
        cdef Error error
        cdef int status
        loading.poll = poll_interruption
        reader._check_open()
        with nogil:
            status = core.reset_states(&self.core, &loading, &error)
        check_reading(reader, status, &error, &loading.failed, loading.number)

    def save(self):
        """The values, a bytearray for each state; the device is not at work."""
        cdef bytearray values = bytearray(sum([state.nbytes for state in self.plan.tensors]))
        cdef char* data = values
        cdef Error error
        cdef int status
        with nogil:
            status = save_states(&self.core, data, &error)
        check_status(status, &error)
        saved, start = [], 0
        for state in self.plan.tensors:
            saved.append(values[start:start + state.nbytes])
            start += state.nbytes
        return saved

    def load(self, values):
        """Gives every state a value of `save`, of the same sizes."""
        cdef bytes joined
        cdef const char* data
        cdef Error error
        cdef int status
        for state, value in zip(self.plan.tensors, values, strict=True):
            if len(value) != state.nbytes:
                raise ValueError(f"{len(value)} bytes for {state.name} of {state.nbytes}")
        joined = b"".join(values)
        data = joined
        with nogil:
            status = load_states(&self.core, data, &error)
        check_status(status, &error)

    def close(self):
        """Releases everything; idempotent. Nothing may be bound to it."""
        if self.closed:
            return
        self.closed = True
        self.handles.close()
        core.close_states(&self.core)

    def __dealloc__(self):
        if self.handles is not None:
            self.handles.close()
        core.close_states(&self.core)
