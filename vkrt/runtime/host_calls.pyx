# cython: language_level=3
"""Host steps: a kernel outside of the delegates, on arrays that lie in the operands' memory."""

import math

import numpy as np

from vkrt.work.records import ReadArgument
from vkrt.work.tensor import itemsize

from vkrt.runtime.resources cimport Resources


cdef class HostStep:
    """A host call with its arrays bound, see `vkrt.work.records.HostCall`."""

    def __cinit__(self, record, Resources resources):
        self.record = record
        self.resources = resources
        self.padding = []
        reads = [_array(resources, o) for o in record.reads]
        self.args = tuple(_bind(arg, reads) for arg in record.args)
        self.outs = tuple(_array(resources, o) for o in record.writes)
        for operand, array in zip(record.writes, self.outs):
            self.padding.append((<unsigned char[:operand.nbytes]><unsigned char*>
                                 resources.host_address(operand))[array.nbytes:])

    cdef run(self, run_kernel):
        for operand in (*self.record.reads, *self.record.writes):
            self.resources.invalidate(operand)
        run_kernel(self.record.kernel, self.args, self.outs)
        # The rest of the last texel is padding, which kernels take to be zero; other tenants of
        # the arena may have written there.
        for padding in self.padding:
            padding[:] = 0
        for operand in self.record.writes:
            self.resources.flush(operand)


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
    cdef unsigned char* address = <unsigned char*>resources.host_address(operand)
    if not nbytes:
        return np.empty(operand.sizes, operand.dtype)
    return np.asarray(<unsigned char[:nbytes]>address).view(operand.dtype).reshape(operand.sizes)
