from libc.stdint cimport int64_t

from vkrt.capi.table cimport vkrt_buffer, vkrt_failure, vkrt_options, vkrt_semaphore, vkrt_tensor

cdef int put_text(char* place, size_t capacity, text) except -1
cdef int failed(vkrt_failure* failure, error) noexcept
cdef object text_at(const char* text)
cdef object memory_at(const void* data, size_t nbytes, int access)
cdef int need(const void* place, str name) except -1
cdef list texts_at(const char** array, size_t number, str name)
cdef const char** array_of(texts, size_t* count) except? NULL
cdef dict words_of(const vkrt_options* options)

cdef tuple sizes_of(int rank, const int64_t* sizes, str label)
cdef object input_of(const vkrt_tensor* tensor, info, size_t index)
cdef list buffers_at(const vkrt_buffer* array, size_t number, str name)
cdef list semaphores_at(const vkrt_semaphore* array, size_t number, str name)

cdef class Outputs:
    cdef vkrt_tensor* tensors
    cdef size_t count
    cdef object infos
