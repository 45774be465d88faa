"""Whether a device reads weights in their file (`vkrt.core.mapping`), and its driver the pages of
files at all (`vkrt.core.map_probe`)."""

from libc.stdint cimport int64_t, uint64_t

from vkrt.core cimport map_probe as core
from vkrt.core cimport mapping
from vkrt.core.error cimport Error
from vkrt.core.physical cimport Physical, free_physical, read_physical
from vkrt.memory.source cimport Source
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device


def reads_files(Device device not None, Source source not None):
    """Whether a device's driver reads imported pages of files: known, or tried now.

    Where the probe itself is not possible, no probe result is kept and the answer is no.

    Args:
        device: an open device; one without a file for compiled pipelines ("off") keeps no result.
        source: an open file, of which the probe reads the first pages.
    """
    cdef Physical physical
    cdef Error error
    cdef bint answer
    cdef bint keeps = device.pipeline_cache_option != "off"
    device.check_process()
    source._check_open()
    try:
        check_status(read_physical(device.core.instance, device.core.physical, &physical, &error),
                     &error)
        physical.driver.driverID = device.info.driver_id  # which a test may have changed
        with nogil:
            answer = core.reads_files(&device.core, &physical, &source.file, keeps)
    finally:
        free_physical(&physical)
    return bool(answer)


cdef str text_of(const char* why):
    return "" if why == NULL else why.decode()


def why_none(Device device not None, bint maps_files):
    """What keeps a device from reading any weight in place, or "".

    Args:
        maps_files: it was measured that its driver does, whatever that says.
    """
    return text_of(mapping.why_none(&device.core, maps_files))


def why_not(Device device not None, Source source not None, int64_t offset, int64_t nbytes,
            int64_t tail, uint64_t alignment):
    """What keeps a device from reading a weight in place that lies in a file as the kernels read
    it, or "".

    Args:
        source: the file, which is open and mapped.
        offset, nbytes: of the weight.
        tail: bytes behind it that kernels read as well.
        alignment: bytes that its address has to be a multiple of.
    """
    source._check_open()
    return text_of(mapping.why_not(&device.core, &source.file, offset, nbytes, tail, alignment))


def max_window(Device device not None):
    """Bytes of a file in one import, at most."""
    return mapping.max_window(&device.core)


def import_span(Device device not None, Source source not None, int64_t offset, int64_t nbytes):
    """The first byte, and the end, of an import that holds `nbytes` at an offset of a file: both
    may lie outside of it."""
    cdef int64_t start, end
    source._check_open()
    mapping.span_of(&device.core, &source.file, offset, nbytes, &start, &end)
    return start, end
