"""Structs of C as values and back: texts, memory, tensors, buffers, and what an error comes to.

Views of the caller's memory are not copied; they end with the call.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdlib cimport malloc
from libc.string cimport memcpy, strcpy

from vkrt.capi.table cimport VKRT_ERROR_INTERNAL

from vkrt.capi import arrays
from vkrt.capi.codes import code_of, text_of
from vkrt.errors import InputError
from vkrt.executable.external_buffers import DeviceBuffer, Semaphore


# Texts, memory, errors

cdef int put_text(char* place, size_t capacity, text) except -1:
    """Writes a text and its zero, cut between characters where it is too long."""
    cdef bytes data = text.encode("utf-8", "replace")[:capacity - 1]
    data = data.decode("utf-8", "ignore").encode("utf-8", "replace")
    memcpy(place, <const char*>data, len(data))
    place[len(data)] = 0
    return 0


cdef int failed(vkrt_failure* failure, error) noexcept:
    """The code of an exception, noted with its text. Never VKRT_OK: describing an exception may
    fail as well, where there is no memory left."""
    failure.code = VKRT_ERROR_INTERNAL
    strcpy(failure.text, "an error that could not be described")
    try:
        failure.code = code_of(error)
        put_text(failure.text, sizeof(failure.text), text_of(error))
    except BaseException:
        pass  # with what is known of it
    return failure.code


cdef object text_at(const char* text):
    """The text; None for a null pointer."""
    return None if text == NULL else text.decode("utf-8", "surrogateescape")


cdef object memory_at(const void* data, size_t nbytes, int access):
    """A view of the caller's memory; None for none."""
    if data == NULL or nbytes == 0:
        return None
    return PyMemoryView_FromMemory(<char*>data, nbytes, access)


cdef int need(const void* place, str name) except -1:
    """Refuses a null pointer."""
    if place == NULL:
        raise InputError(f"{name}: a null pointer")
    return 0


cdef list texts_at(const char** array, size_t number, str name):
    """The host's array of texts."""
    cdef size_t index
    need_items(array, number, name)
    texts = []
    for index in range(number):
        need(array[index], f"{name}[{index}]")
        texts.append(text_at(array[index]))
    return texts


cdef int need_items(const void* array, size_t number, str name) except -1:
    return need(array, name) if number else 0


# Arrays of texts that were given to hosts, which keep them: (bytes of each) -> address. There are
# as many as there are answers, a handful.
cdef dict given_arrays = {}


cdef const char** array_of(texts, size_t* count) except? NULL:
    """An array of C strings that stays to the end of the process."""
    cdef const char** made
    cdef size_t index
    cdef bytes text
    key = tuple([one.encode() for one in texts])
    count[0] = len(key)
    if not key:
        return NULL
    if key not in given_arrays:
        made = <const char**>malloc(len(key) * sizeof(char*))
        if made == NULL:
            raise MemoryError
        for index, text in enumerate(key):
            made[index] = text
        given_arrays[key] = <size_t>made
    # The strings are those of the key that is kept, which may not be this one.
    return <const char**><size_t>given_arrays[key]


cdef dict words_of(const vkrt_options* options):
    """The options of a load that are words, numbers or choices, by the names of `vkrt.load`: those
    that are given."""
    if options.packed != NULL:
        raise InputError("vkrt_options: `packed` is no longer used and has to be null; `vkrt "
                         "compile` makes a file that loads with its weights packed")
    words = {"storage": text_at(options.storage), "weights": text_at(options.weights),
             "prefetch": text_at(options.prefetch), "winograd": text_at(options.winograd),
             "fusions": text_at(options.fusions), "specialize": text_at(options.specialize),
             "pipeline_cache": text_at(options.pipeline_cache),
             "plan_cache": text_at(options.plan_cache), "order": text_at(options.order),
             "prefer": text_at(options.prefer), "cache": text_at(options.cache),
             "chunk": options.chunk or None}
    if options.stream_lookahead != NULL:
        words["stream_lookahead"] = options.stream_lookahead[0]
    if options.keep_cached != NULL:
        words["keep_cached"] = options.keep_cached[0] != 0
    return {name: word for name, word in words.items() if word is not None}


# Tensors and buffers

cdef tuple sizes_of(int rank, const int64_t* sizes, str label):
    """The host's sizes of a tensor."""
    if not 0 <= rank <= arrays.MAX_RANK:
        raise InputError(f"{label}: rank {rank} is not 0 to {arrays.MAX_RANK}")
    return tuple([sizes[dim] for dim in range(rank)])


cdef object input_of(const vkrt_tensor* tensor, info, size_t index):
    """An input as an array over the caller's memory."""
    label = f"input {index}"
    dtype = arrays.dtype_of(tensor.dtype, label)
    sizes = ()
    if dtype is not None:
        sizes = sizes_of(tensor.rank, tensor.sizes, label)
    return arrays.input_array(memory_at(tensor.data, tensor.nbytes, PyBUF_READ), dtype, sizes, info,
                              label)


cdef class Outputs:
    """The caller's outputs: described, then given as arrays, once a run knows their sizes."""

    def __call__(self, sizes):
        cdef size_t index
        cdef int dim
        memories = [memory_at(self.tensors[index].data, self.tensors[index].nbytes, PyBUF_WRITE)
                    for index in range(self.count)]
        for index, (info, shape) in enumerate(zip(self.infos[:self.count], sizes)):
            self.tensors[index].dtype = arrays.number_of(info.dtype)
            self.tensors[index].rank = len(shape)
            for dim, size in enumerate(shape):
                self.tensors[index].sizes[dim] = size
            self.tensors[index].nbytes = arrays.nbytes_of(info.dtype, shape)
        if self.count != len(self.infos):
            return memories  # which the method refuses
        return arrays.output_arrays(memories, self.infos, sizes)


cdef list buffers_at(const vkrt_buffer* array, size_t number, str name):
    """The host's array of buffers."""
    cdef size_t index
    need_items(array, number, name)
    return [DeviceBuffer(array[index].buffer, array[index].nbytes, array[index].offset,
                         sizes_of(array[index].rank, array[index].sizes, f"{name}[{index}]")
                         if array[index].has_sizes else None)
            for index in range(number)]


cdef list semaphores_at(const vkrt_semaphore* array, size_t number, str name):
    """The host's array of semaphores."""
    cdef size_t index
    need_items(array, number, name)
    return [Semaphore(array[index].semaphore,
                      array[index].value if array[index].is_timeline else None)
            for index in range(number)]
