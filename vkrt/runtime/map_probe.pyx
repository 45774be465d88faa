"""Whether a device reads weights in their file (`vkrt.core.mapping`), and its driver the pages of
files at all (`vkrt.core.map_probe`)."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t

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


def windows_of(Device device not None, Source source not None, parts):
    """(first byte, end) of the imports of a file that hold these parts of it, each of which is
    (offset, bytes). An import may begin before the file, and end behind it."""
    cdef int64_t start = INT64_MAX, end = INT64_MIN, offset, nbytes
    windows = []
    source._check_open()
    for offset, nbytes in parts:
        if not mapping.extend_window(&device.core, &source.file, offset, nbytes, &start, &end):
            windows.append((start, end))
            start, end = INT64_MAX, INT64_MIN
            mapping.extend_window(&device.core, &source.file, offset, nbytes, &start, &end)
    return [*windows, (start, end)] if parts else []
