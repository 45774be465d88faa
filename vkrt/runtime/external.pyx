# cython: language_level=3
"""How a run uses buffers of the host's, in the core's terms."""

from libc.stdlib cimport calloc, free

from vkrt.core.external cimport ExternalBuffer
from vkrt.core.records cimport RangeRow
from vkrt.core.vulkan cimport VkBuffer


cdef class ExternalBinding:
    """A `vkrt.executable.lending.Lending`, in the core's terms."""

    def __cinit__(self, lending not None):
        self.in_place = <ExternalPlace*>calloc(len(lending.in_place) + 1, sizeof(ExternalPlace))
        self.copies_in = <ExternalCopy*>calloc(len(lending.copies_in) + 1, sizeof(ExternalCopy))
        self.copies_out = <ExternalCopy*>calloc(len(lending.copies_out) + 1, sizeof(ExternalCopy))
        if self.in_place == NULL or self.copies_in == NULL or self.copies_out == NULL:
            raise MemoryError()
        for number, (storage, buffer) in enumerate(lending.in_place):
            self.in_place[<size_t>number] = ExternalPlace(storage, _buffer_of(buffer))
        for number, copy in enumerate(lending.copies_in):
            self.copies_in[<size_t>number] = _copy_of(copy)
        for number, copy in enumerate(lending.copies_out):
            self.copies_out[<size_t>number] = _copy_of(copy)
        self.core = IOBinding(self.in_place, len(lending.in_place),
                              self.copies_in, len(lending.copies_in),
                              self.copies_out, len(lending.copies_out))

    def __dealloc__(self):
        free(self.in_place)
        free(self.copies_in)
        free(self.copies_out)


cdef ExternalBuffer _buffer_of(buffer) except *:
    cdef size_t handle = buffer.handle
    return ExternalBuffer(<VkBuffer>handle, buffer.offset, buffer.nbytes)


cdef ExternalCopy _copy_of(copy) except *:
    return ExternalCopy(RangeRow(copy.range.storage, copy.range.offset, copy.range.nbytes),
                        _buffer_of(copy.buffer), copy.nbytes)
