# cython: language_level=3
"""Host steps: a kernel outside of the delegates, on arrays that lie in the operands' memory."""

from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory

from vkrt.late import numpy as np
from vkrt.work.records import CHOICE, SKIPPED, ReadArgument

from vkrt.runtime.resources cimport Resources


cdef class HostStep:
    """A `vkrt.executable.records.HostKernel` with its arrays bound."""

    def __cinit__(self, record, Resources resources):
        self.record = record
        self.resources = resources
        self.padding = []
        self.is_choice = record.name == CHOICE
        reads = [_array(resources, array) for array in record.reads]
        self.args = tuple(_bind(arg, reads) for arg in record.args)
        self.outs = tuple(_array(resources, array) for array in record.writes)
        for place, array in zip(record.writes, self.outs):
            rest = place.range.nbytes - array.nbytes
            if rest:
                self.padding.append(_bytes_at(resources, place.range, array.nbytes, rest))

    cdef bint run(self, run_kernel, bint skipping) except? True:
        """Runs the kernel, or makes the choice.

        Args:
            skipping: whether what stands here is in a branch that is not taken.

        Returns:
            The same for what is behind it.
        """
        if skipping and not self.is_choice:
            run_kernel(SKIPPED, (), ())
            return True
        for array in (*self.record.reads, *self.record.writes):
            self.resources.invalidate(array.range)
        goes_on = run_kernel(self.record.name, self.args, self.outs)
        # The rest of the last texel is padding, which kernels take to be zero; other tenants of
        # the arena may have written there.
        for padding in self.padding:
            padding[:] = bytes(len(padding))
        for array in self.record.writes:
            self.resources.flush(array.range)
        return not goes_on


def _bind(arg, reads):
    """The argument with the arrays of what is read in their places."""
    if isinstance(arg, ReadArgument):
        return reads[arg.read]
    if isinstance(arg, tuple):
        return [_bind(item, reads) for item in arg]
    return arg


cdef _array(Resources resources, place):
    """A numpy array over the memory of a `HostArray`, valid as long as the resources are bound."""
    cdef size_t nbytes = place.nbytes
    if not nbytes:
        return np.empty(place.sizes, place.dtype)
    return np.frombuffer(_bytes_at(resources, place.range, 0, nbytes),
                         place.dtype).reshape(place.sizes)


cdef _bytes_at(Resources resources, part, size_t offset, size_t nbytes):
    """A memoryview of a part of a storage, from an offset in it on."""
    return PyMemoryView_FromMemory(<char*>resources.host_address(part) + offset, nbytes,
                                   PyBUF_WRITE)
