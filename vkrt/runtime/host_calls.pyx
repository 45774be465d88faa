# cython: language_level=3
"""Host steps: a kernel outside of the delegates, on arrays that lie in the operands' memory."""

import math

from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory

from vkrt.late import numpy as np
from vkrt.work.records import CHOICE, SKIPPED, ReadArgument
from vkrt.work.tensor import itemsize

from vkrt.runtime.resources cimport Resources


cdef class HostStep:
    """A host call with its arrays bound, see `vkrt.work.records.HostCall`."""

    def __cinit__(self, record, Resources resources):
        self.record = record
        self.resources = resources
        self.padding = []
        self.is_choice = record.kernel == CHOICE
        reads = [_array(resources, o) for o in record.reads]
        self.args = tuple(_bind(arg, reads) for arg in record.args)
        self.outs = tuple(_array(resources, o) for o in record.writes)
        for operand, array in zip(record.writes, self.outs):
            rest = operand.nbytes - array.nbytes
            if rest:
                self.padding.append(_bytes_at(resources, operand, array.nbytes, rest))

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
        for operand in (*self.record.reads, *self.record.writes):
            self.resources.invalidate(operand)
        goes_on = run_kernel(self.record.kernel, self.args, self.outs)
        # The rest of the last texel is padding, which kernels take to be zero; other tenants of
        # the arena may have written there.
        for padding in self.padding:
            padding[:] = bytes(len(padding))
        for operand in self.record.writes:
            self.resources.flush(operand)
        return not goes_on


def _bind(arg, reads):
    """The argument with the arrays of what is read in their places."""
    if isinstance(arg, ReadArgument):
        return reads[arg.read]
    if isinstance(arg, tuple):
        return [_bind(item, reads) for item in arg]
    return arg


cdef _array(Resources resources, operand):
    """A numpy array over a raw operand's memory, valid as long as the resources are bound."""
    cdef size_t nbytes = math.prod(operand.sizes) * itemsize(operand.dtype)
    if not nbytes:
        return np.empty(operand.sizes, operand.dtype)
    return np.frombuffer(_bytes_at(resources, operand, 0, nbytes),
                         operand.dtype).reshape(operand.sizes)


cdef _bytes_at(Resources resources, operand, size_t offset, size_t nbytes):
    """A memoryview of an operand's memory, from an offset on."""
    return PyMemoryView_FromMemory(<char*>resources.host_address(operand) + offset, nbytes,
                                   PyBUF_WRITE)
