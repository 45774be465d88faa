"""What goes wrong where the core reads files for a method."""

from cpython.exc cimport PyErr_Occurred

from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_ERROR_SYSTEM, Error
from vkrt.core.pieces cimport Job
from vkrt.memory.reader cimport Reader
from vkrt.vk.check cimport check_status


# Raises what the core says, as `check_status` does; an error of a read names its file.
#   reader: of the files; None where nothing was read
#   failed: the job that the error is about, or NULL
#   number: of the system's error
cdef inline int check_reading(Reader reader, int status, const Error* error, const Job* failed,
                              int number) except -1:
    if (reader is not None and status in (VKRT_ERROR_SYSTEM, VKRT_ERROR_CANCELLED)
            and PyErr_Occurred() == NULL):
        return reader.fail(status, error, failed, number)
    return check_status(status, error)
