"""Host calls: kernels outside of the delegates, on arrays that lie in the operands' memory."""

from cpython.buffer cimport PyBUF_WRITE
from cpython.exc cimport PyErr_SetObject
from cpython.memoryview cimport PyMemoryView_FromMemory

from vkrt.work.host_arguments import BRANCH, ReadArgument

from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_ERROR_INTERNAL, VKRT_OK, fail
from vkrt.core.handles cimport host_address
from vkrt.core.records cimport RangeRow


cdef class HostCalls:
    """The kernels of a plan that run on the host, with their arrays bound; made by `calls_of`."""

    def __cinit__(self):
        self.calls = {}


cdef HostCalls calls_of(plan, const Handles* handles):
    cdef HostCalls made = HostCalls()
    for number, submission in enumerate(plan.submissions):
        kernel = submission.host
        if kernel is not None and kernel.table is None and kernel.name != BRANCH:
            reads = [_array(handles, array) for array in kernel.reads]
            made.calls[number] = (kernel.name, tuple([_bind(arg, reads) for arg in kernel.args]),
                                  tuple([_array(handles, array) for array in kernel.writes]))
    return made


cdef int run_host_call(void* data, int64_t submission, bint skipped,
                       Error* error) noexcept with gil:
    cdef HostCalls calls = <HostCalls>data
    if skipped:
        return VKRT_OK
    try:
        calls.run_kernel(*calls.calls[submission])
        return VKRT_OK
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        # An interruption leaves the run to the device; what has failed is begun anew.
        return fail(error, VKRT_ERROR_INTERNAL if isinstance(raised, Exception)
                    else VKRT_ERROR_CANCELLED, b"a kernel of the host has raised an exception")


def _bind(arg, reads):
    """The argument with the arrays of what is read in their places."""
    if isinstance(arg, ReadArgument):
        return reads[arg.read]
    if isinstance(arg, tuple):
        return [_bind(item, reads) for item in arg]
    return arg


cdef _array(const Handles* handles, place):
    """A numpy array over the memory of a `HostArray`, valid as long as that is bound."""
    import numpy as np  # few programs have kernels on the host

    cdef RangeRow part = RangeRow(place.range.storage, place.range.offset, place.range.nbytes)
    cdef size_t nbytes = place.nbytes
    if not nbytes:
        return np.empty(place.sizes, place.dtype)
    memory = PyMemoryView_FromMemory(host_address(handles, &part), nbytes, PyBUF_WRITE)
    return np.frombuffer(memory, place.dtype).reshape(place.sizes)
