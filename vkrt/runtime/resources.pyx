# cython: language_level=3
"""The buffers and images behind a work list's storages, created unallocated."""

from vkrt.device.policy import policy_of
from vkrt.executable.formats import BUFFER_USAGE, IMAGE_USAGE, TEXEL_FORMATS
from vkrt.executable.records import STAGING
from vkrt.vk.resource import buffer_requirements, image_requirements

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from vkrt.core.memory_types cimport hidden_types
from vkrt.vk.device cimport Device
from vkrt.vk.memory cimport Block
from vkrt.vk.resource cimport Buffer, BufferView, Image

# Of float32; those of other dtypes are smaller.
cdef uint64_t TEXEL_BYTES = 16
# What makes a view of a multiple of 64 KiB another
cdef uint64_t MARGIN = 256


cdef uint64_t _view_bytes(uint64_t nbytes):
    """The size of a texel view of so many bytes, see `Policy.odd_sizes`."""
    return nbytes if nbytes >> 8 & 0xff else nbytes + MARGIN


cdef uint64_t _buffer_bytes(storage, bint odd):
    """The size of a storage's buffer. An odd one has room for such a view of any storage, so that a
    smaller storage never needs more than a larger one."""
    cdef uint64_t nbytes = storage.nbytes
    if not odd:
        return nbytes
    nbytes += MARGIN
    return nbytes if nbytes & (nbytes - 1) else nbytes + TEXEL_BYTES


def requirements_of(Device device):
    """What a storage will need on a device, for plans made before anything exists.

    Returns a function: storage -> (size, alignment, memory type bits).
    """
    cdef bint odd = policy_of(device.info).odd_sizes
    # Where memory is shared the host writes and reads every buffer, but no image: one that cannot
    # lie where the host sees it must not take a buffer along.
    hidden = hidden_types(&device.core.memory_properties) if device.core.unified else 0
    known = {}

    def of_buffer(nbytes, shared):
        size, alignment, bits = buffer_requirements(device, nbytes, BUFFER_USAGE, shared)
        return size, alignment, bits & ~hidden or bits

    def requirements(storage):
        # A weight may come to lie in the pool, see `Resources.allow_uploads`.
        shared = storage.role == "weight"
        key = (storage.extents, storage.dtype if storage.is_image else storage.nbytes, shared)
        if key not in known:
            known[key] = (image_requirements(device, storage.extents, TEXEL_FORMATS[storage.dtype],
                                             IMAGE_USAGE) if storage.is_image else
                          of_buffer(_buffer_bytes(storage, odd), shared))
        return known[key]
    return requirements


cdef class Resources:
    """Handles of the storages of a work list, by storage id.

    They are bound to memory when the memory contract allows it.
    """

    def __cinit__(self, Device device, storages):
        self.device = device
        self.odd = policy_of(device.info).odd_sizes
        self.storages = storages
        self.handles = [None] * len(storages)
        self.offsets = [0] * len(storages)
        self.views = {}
        self.shared = set()

    def create(self, ids):
        """Creates an unbound buffer or image for each storage of these ids."""
        for number in ids:
            storage = self.storages[number]
            if storage.is_image:
                handle = Image(self.device, storage.extents, TEXEL_FORMATS[storage.dtype],
                               IMAGE_USAGE)
            else:
                handle = Buffer(self.device, _buffer_bytes(storage, self.odd), BUFFER_USAGE)
            self.handles[number] = handle

    def share(self, Resources other, storages):
        """Takes the handles of these storages of another work list, as far as this one has them."""
        for storage in storages:
            number = storage.id
            # A work list made before others had this storage may have another under its id.
            if number < len(self.handles) and self.storages[number] == storage:
                self.handles[number] = other.handles[number]
                self.offsets[number] = other.offsets[number]
                self.shared.add(number)

    def share_as(self, int storage, Resources other, int there):
        """Makes a storage the one of another work list that has the same bytes."""
        self.handles[storage] = other.handles[there]
        self.offsets[storage] = other.offsets[there]
        self.shared.add(storage)

    def bind(self, block_places, Block block):
        """Gives the storages of a planned block their places in the allocated one."""
        for place in block_places:
            self.handles[place.storage].bind(block, place.offset)

    def place(self, int storage, Buffer buffer, offset):
        """Makes a storage a part of a bound buffer that is somebody else's."""
        self.handles[storage].close()
        self.handles[storage] = buffer
        self.offsets[storage] = offset

    def allow_uploads(self, int storage):
        """Makes a buffer, unbound yet, one that the queue for copies may write."""
        if self.device.core.upload_family != self.device.core.queue_family:
            self.handles[storage].close()
            nbytes = _buffer_bytes(self.storages[storage], self.odd)
            self.handles[storage] = Buffer(self.device, nbytes, BUFFER_USAGE, False, True)

    def address_of(self, int storage):
        """Where the host writes a buffer that it sees, as a number."""
        cdef Buffer buffer = self.handles[storage]
        if buffer.block is None or buffer.block.core.mapped == NULL:
            raise RuntimeError(f"storage {storage} is not host-visible")
        return <size_t>buffer.block.core.mapped + buffer.core.memory.offset

    cdef Buffer buffer(self, int storage):
        """The buffer that a storage is a part of."""
        return self.staging if storage == STAGING else self.handles[storage]

    cdef tuple place_of(self, part):
        """(offset, bytes) of a `Range` in the buffer that its storage is a part of."""
        cdef int storage = part.storage
        if storage == STAGING:
            return part.offset, part.nbytes
        # A buffer may hold more than the storage: a mapped file, the pool of streamed weights.
        if part.offset + part.nbytes > self.storages[storage].nbytes:
            raise AssertionError(f"{part} reaches beyond its storage")
        return self.offsets[storage] + part.offset, part.nbytes

    cdef BufferView texel_view(self, part, int format):
        """A view of a `Range` of a buffer as texels of a VkFormat."""
        cdef Buffer buffer
        key = (part, format)
        view = self.views.get(key)
        if view is None:
            buffer = self.handles[part.storage]
            offset, nbytes = self.place_of(part)
            if self.odd and self._has_room(part, buffer, offset):
                nbytes = _view_bytes(nbytes)
            view = BufferView(buffer, format, offset, nbytes)
            self.views[key] = view
        return view

    cdef bint _has_room(self, part, Buffer buffer, uint64_t offset) except -1:
        """Whether nobody writes what an odd view has beyond a range: it is the margin of the
        storage's own buffer, or lies in an imported file, which has no block. No kernel reads it.
        """
        storage = self.storages[part.storage]
        if buffer.block is None:
            return offset + _view_bytes(part.nbytes) <= buffer.core.size
        return (part.offset + part.nbytes == storage.nbytes
                and buffer.core.size == _buffer_bytes(storage, True))

    cdef void* host_address(self, part) except NULL:
        """Where the host reads and writes a `Range`."""
        return <char*><size_t>self.address_of(part.storage) + <size_t>part.offset

    # Where memory is not coherent both carry whole atoms of it, and what else is in the first and
    # the last one has to come to no harm. So the host invalidates all that it will read, and write
    # beside what the device wrote, then writes, then flushes all it wrote; and it does so while
    # the device leaves that memory in peace. Then nothing unflushed is dropped, and nothing stale
    # is flushed.

    cdef int invalidate(self, part) except -1:
        cdef Buffer buffer = self.handles[part.storage]
        if not buffer.block.core.coherent:
            buffer.block.invalidate(buffer.core.memory.offset + <uint64_t>part.offset, part.nbytes)
        return 0

    cdef int flush(self, part) except -1:
        cdef Buffer buffer = self.handles[part.storage]
        if not buffer.block.core.coherent:
            buffer.block.flush(buffer.core.memory.offset + <uint64_t>part.offset, part.nbytes)
        return 0

    cdef int copy_in(self, part, array) except -1:
        cdef Py_buffer data
        cdef void* target = self.host_address(part)
        cdef size_t limit = part.nbytes
        PyObject_GetBuffer(array, &data, PyBUF_SIMPLE)
        try:
            if <size_t>data.len > limit:
                raise ValueError(f"{data.len} bytes for a range of {limit}")
            if data.len:
                # Nothing that the device has written is alive in this memory between two runs.
                with nogil:
                    memcpy(target, data.buf, data.len)
                # The rest of the last texel is padding, which kernels take to be zero.
                memset(<char*>target + data.len, 0, limit - data.len)
                self.flush(part)
        finally:
            PyBuffer_Release(&data)
        return 0

    cdef int copy_out(self, part, array) except -1:
        cdef Py_buffer data
        cdef void* source = self.host_address(part)
        cdef size_t limit = part.nbytes
        PyObject_GetBuffer(array, &data, PyBUF_WRITABLE)
        try:
            if <size_t>data.len > limit:
                raise ValueError(f"{data.len} bytes of a range of {limit}")
            if data.len:
                self.invalidate(part)
                with nogil:
                    memcpy(data.buf, source, data.len)
        finally:
            PyBuffer_Release(&data)
        return 0

    def close(self):
        """Releases every view and handle but those shared; memory blocks are the owner's."""
        for view in self.views.values():
            view.close()
        for number, handle in enumerate(self.handles):
            if handle is not None and number not in self.shared:
                handle.close()
        self.views = {}
        self.handles = []
