from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.loaded_program cimport LoadedProgram, load_row, unload_row
from vkrt.core.method cimport SharedWeights
from vkrt.core.records cimport CompiledMethodRow
from vkrt.core.targets cimport shared_row


cdef SharedWeights* find_loaded(const LoadedProgram* program,
                                const CompiledMethodRow* row) noexcept nogil:
    cdef SharedWeights* found = program.shared
    while found != NULL and found.row != row:
        found = found.next
    return found


cdef int load_shared(LoadedProgram* program, const CompiledMethodRow* row, OnPart on_part,
                     void* data, SharedWeights** loaded, Error* error) noexcept nogil:
    cdef SharedWeights* made = <SharedWeights*>calloc(1, sizeof(SharedWeights))
    if made == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"shared weights: the host is out of memory")
    if load_row(program, row, NULL, on_part, data, &made.method, error):
        free(made)
        return error.status
    made.row, made.next = row, program.shared
    program.shared = loaded[0] = made
    return VKRT_OK


cdef int take_shared(ProgramMethod* method, const CompiledTargetRow* target, OnPart on_part,
                     void* data, Error* error) noexcept nogil:
    cdef LoadedProgram* program = method.program
    cdef const CompiledMethodRow* row
    cdef SharedWeights* weights
    cdef int64_t i
    method.shared = <SharedWeights**>calloc(<size_t>method.row.shared.count + 1, sizeof(void*))
    if method.shared == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"shared weights: the host is out of memory")
    for i in range(method.row.shared.count):
        row = shared_row(&program.program.records, target, method.row, i)
        weights = find_loaded(program, row)
        if weights == NULL and load_shared(program, row, on_part, data, &weights, error):
            return error.status
        weights.users += 1
        method.shared[i] = weights
    return VKRT_OK


cdef void close_shared(LoadedProgram* program, SharedWeights* weights) noexcept nogil:
    cdef SharedWeights** link = &program.shared
    while link[0] != weights:
        link = &link[0].next
    link[0] = weights.next
    unload_row(program, weights.row, &weights.method)
    free(weights)


cdef void drop_shared(ProgramMethod* method) noexcept nogil:
    cdef int64_t i
    if method.shared == NULL:
        return
    for i in range(method.row.shared.count):
        if method.shared[i] == NULL:
            break
        method.shared[i].users -= 1
        if method.shared[i].users == 0:
            close_shared(method.program, method.shared[i])
    free(method.shared)
    method.shared = NULL
