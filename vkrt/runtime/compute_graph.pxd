from vkrt.core.error cimport Error
from vkrt.core.execution cimport Execution
from vkrt.core.host_kernel cimport Host
from vkrt.core.records cimport HostArrayRow, Rows as Span
from vkrt.executable.rows cimport Rows
from vkrt.memory.reader cimport Reader
from vkrt.runtime.external cimport ExternalBinding
from vkrt.runtime.host_calls cimport HostCalls
from vkrt.runtime.pipelines cimport KernelTable, Pipelines
from vkrt.runtime.state_memory cimport StateMemory
from vkrt.runtime.streaming cimport Streamer
from vkrt.vk.batch cimport SemaphoreList
from vkrt.vk.device cimport Device


cdef class ComputeGraph:
    cdef Device device
    cdef Pipelines pipelines
    cdef object plan
    cdef Rows rows
    cdef KernelTable kernels
    cdef Execution core
    # What it is bound to: these hold what the device reads in a run that was interrupted
    cdef tuple weights, blocks
    cdef StateMemory state
    cdef HostCalls calls
    cdef Streamer streamer
    cdef Reader row_reader
    # The recording of a profile whose run was interrupted (`timed_runs`)
    cdef object recording
    # Held by the thread that waits: the graph's owner, or one that loads another program
    cdef object waiting
    cdef readonly bint unfinished
    cdef readonly bint bound

    cdef int _bind(self, ExternalBinding binding) except -1
    cdef const HostArrayRow* _array(self, const Span* arrays, int index) except? NULL
    cdef int _check_size(self, const HostArrayRow* place, Py_ssize_t nbytes) except -1
    cdef SemaphoreList _semaphores(self, semaphores)
    cdef Host host(self, run_kernel) except *
    cdef int check_run(self, int status, const Error* error) except -1
    cdef int _note_states(self, int status, const Error* error) except -1
