# cython: language_level=3
"""Whether a driver reads the pages of files in place: the core's trial (`vkrt.core.map_trial`)."""

from vkrt.core cimport map_trial as core
from vkrt.core.error cimport Error
from vkrt.core.physical cimport Physical, free_physical, read_physical
from vkrt.memory.source cimport Source
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device


def reads_files(Device device not None, Source source not None):
    """Whether a device's driver reads imported pages of files: known, or tried now.

    Where the trial itself is not possible, no verdict is kept and the answer is no.

    Args:
        device: an open device; one without a file for compiled pipelines ("off") keeps no verdict.
        source: an open file, of which the trial reads the first pages.
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
