"""The buffers and images behind the storages of a plan: the core's, with exceptions."""

cimport cython

from vkrt.device.policy import policy_of

from vkrt.core cimport handles as core
from vkrt.core.error cimport Error
from vkrt.core.fit cimport Requirements
from vkrt.core.records cimport RangeRow
from vkrt.vk.check cimport check_status


def requirements_of(Device device):
    """What a storage will need on a device, for plans made before anything exists.

    Returns a function: storage -> (size, alignment, memory type bits).
    """
    cdef bint padded = policy_of(device.info).avoid_recompile_padding
    known = {}

    def requirements(storage):
        key = (storage.extents, storage.dtype if storage.is_image else storage.nbytes,
               storage.role == "weight")
        if key not in known:
            known[key] = _requirements(device, storage, padded)
        return known[key]
    return requirements


cdef tuple _requirements(Device device, storage, bint padded):
    cdef Rows rows = Rows((storage,))
    cdef Requirements found
    cdef Error error
    check_status(core.storage_requirements(&device.core, rows.records.storage, padded, &found,
                                           &error), &error)
    return found.nbytes, found.alignment, found.type_bits


@cython.no_gc_clear
cdef class Handles:
    """Handles of the storages of a plan, by number: not made yet, but for those that others share.

    Args:
        device: an open device.
        rows: have the storages.
    """

    def __cinit__(self, Device device not None, Rows rows not None):
        cdef Error error
        self.device, self.rows, self.owners = device, rows, []
        check_status(core.open_handles(&device.core, &rows.records, &rows.storages,
                                       policy_of(device.info).avoid_recompile_padding, &self.core,
                                       &error), &error)

    cdef int share_one(self, int storage, Handles other, int there) except -1:
        """Makes a storage the one of others that has the same bytes."""
        core.share_handle(&self.core, storage, &other.core, there)
        self.owners.append(other)
        return 0

    def address_of(self, int storage):
        """Where the host reads and writes a buffer that it sees, as a number."""
        cdef RangeRow part = RangeRow(storage, 0, 0)
        cdef char* address = NULL
        if 0 <= storage < self.core.count:
            address = core.host_address(&self.core, &part)
        if address == NULL:
            raise ValueError(f"storage {storage} is not host-visible")
        return <size_t>address

    def close(self):
        """Releases what was made here; memory blocks are their owner's. May be called again."""
        core.close_handles(&self.core)
        self.owners = []

    def __dealloc__(self):
        core.close_handles(&self.core)
