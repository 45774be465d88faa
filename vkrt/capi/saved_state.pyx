from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from vkrt.capi.compiled_info cimport dtype_name
from vkrt.capi.failure cimport failed, refuse
from vkrt.capi.table cimport VKRT_OK
from vkrt.core.error cimport VKRT_ERROR_CAPACITY, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, Error
from vkrt.core.method_state cimport load_values, save_values, state_tensors
from vkrt.core.records cimport Records, StateTensorRow, Text

cdef extern from * nogil:
    """
    #define VKRT_STATE_MAGIC "vkrtst1"
    """
    const char* MAGIC "VKRT_STATE_MAGIC"  # and its zero

cdef enum:
    MAGIC_BYTES = 8
    # and the length of the header's text
    START_BYTES = 16


# A text that is written, or only counted where there is no place
cdef struct Writer:
    char* place
    size_t used


cdef void put(Writer* writer, const char* text, size_t nbytes) noexcept nogil:
    if writer.place != NULL:
        memcpy(writer.place + writer.used, text, nbytes)
    writer.used += nbytes


cdef void put_unit(Writer* writer, uint32_t unit) noexcept nogil:
    """A unit of UTF-16, as JSON has it in ASCII."""
    cdef char[12] text
    snprintf(text, sizeof(text), b"\\u%04x", <unsigned>unit)
    put(writer, text, 6)


cdef uint32_t code_at(const char* text, size_t nbytes, size_t* used) noexcept nogil:
    """The first character of a text in UTF-8, and its bytes."""
    cdef unsigned char first = <unsigned char>text[0]
    cdef size_t count = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    cdef uint32_t code = first if count == 1 else first & (0x7F >> count)
    cdef size_t i
    used[0] = min(count, nbytes)
    for i in range(1, used[0]):
        code = code << 6 | <unsigned char>text[i] & 0x3F
    return code


cdef void put_character(Writer* writer, const char* text, size_t nbytes,
                        uint32_t code) noexcept nogil:
    cdef char short = (c'"' if code == 0x22 else c'\\' if code == 0x5C else c'n' if code == 0x0A
                       else c'r' if code == 0x0D else c't' if code == 0x09
                       else c'b' if code == 0x08 else c'f' if code == 0x0C else 0)
    if short != 0:
        put(writer, b"\\", 1)
        put(writer, &short, 1)
    elif 0x20 <= code < 0x7F:
        put(writer, text, nbytes)
    elif code < 0x10000:
        put_unit(writer, code)
    else:
        put_unit(writer, 0xD800 + (code - 0x10000 >> 10))
        put_unit(writer, 0xDC00 + (code - 0x10000 & 0x3FF))


cdef void put_string(Writer* writer, const Records* records, const Text* text) noexcept nogil:
    cdef const char* start = records.texts + text.first
    cdef size_t nbytes = <size_t>text.count
    cdef size_t done = 0, used
    cdef uint32_t code
    put(writer, b'"', 1)
    while done < nbytes:
        code = code_at(start + done, nbytes - done, &used)
        put_character(writer, start + done, used, code)
        done += used
    put(writer, b'"', 1)


cdef void put_tensor(Writer* writer, const Records* records,
                     const StateTensorRow* tensor) noexcept nogil:
    """[name, dtype, sizes]"""
    cdef char[80] text
    cdef int64_t i
    put(writer, b"[", 1)
    put_string(writer, records, &tensor.name)
    put(writer, text, snprintf(text, sizeof(text), b", \"%s\", [", dtype_name(tensor.dtype)))
    for i in range(tensor.sizes.count):
        put(writer, text, snprintf(text, sizeof(text), b"%s%lld", b", " if i else b"",
                                   <long long>records.integer[tensor.sizes.first + i]))
    put(writer, b"]]", 2)


cdef size_t write_header(MethodState* state, char* place) noexcept nogil:
    """What stands before the values, or only how many bytes that is."""
    cdef const Records* records = &state.method.program.program.records
    cdef const StateTensorRow* tensors
    cdef int64_t count = state_tensors(state.method, &tensors)
    cdef Writer writer = Writer(place, START_BYTES)
    cdef size_t nbytes
    cdef int64_t i
    put(&writer, b"[", 1)
    for i in range(count):
        if i:
            put(&writer, b", ", 2)
        put_tensor(&writer, records, &tensors[i])
    put(&writer, b"]", 1)
    if place != NULL:
        memcpy(place, MAGIC, MAGIC_BYTES)
        nbytes = writer.used - START_BYTES
        for i in range(8):
            place[MAGIC_BYTES + i] = <char>(nbytes >> 8 * i & 0xFF if i < <int>sizeof(size_t)
                                            else 0)
    return writer.used


cdef size_t value_bytes(MethodState* state) noexcept nogil:
    cdef const StateTensorRow* tensors
    cdef size_t nbytes = 0
    cdef int64_t i
    for i in range(state_tensors(state.method, &tensors)):
        nbytes += <size_t>tensors[i].nbytes
    return nbytes


cdef int save_state(vkrt_failure* failure, MethodState* state, void* buffer, size_t nbytes,
                    size_t* needed) noexcept nogil:
    cdef size_t header = write_header(state, NULL)
    cdef Error error
    needed[0] = header + value_bytes(state)
    if buffer == NULL:
        return VKRT_OK
    if nbytes < needed[0]:
        return refuse(failure, VKRT_ERROR_CAPACITY, b"the state has %zu bytes, its memory %zu",
                      needed[0], nbytes)
    write_header(state, <char*>buffer)
    if save_values(state, <char*>buffer + header, &error):
        return failed(failure, &error)
    return VKRT_OK


cdef int check_saved(vkrt_failure* failure, MethodState* state, const void* data, size_t nbytes,
                     size_t header, char* expected) noexcept nogil:
    write_header(state, expected)
    if nbytes < MAGIC_BYTES or memcmp(data, MAGIC, MAGIC_BYTES) != 0:
        return refuse(failure, VKRT_ERROR_INPUT, b"these bytes are no saved state")
    if nbytes != header + value_bytes(state) or memcmp(data, expected, header) != 0:
        return refuse(failure, VKRT_ERROR_INPUT, b"this is the state of another method than "
                      b"'%.*s', or not all of it",
                      <int>min(state.method.name.count, <int64_t>100),
                      state.method.program.program.records.texts + state.method.name.first)
    return VKRT_OK


cdef int load_state(vkrt_failure* failure, MethodState* state, const void* data,
                    size_t nbytes) noexcept nogil:
    cdef size_t header = write_header(state, NULL)
    cdef char* expected = <char*>calloc(1, header)
    cdef Error error
    cdef int status
    if expected == NULL:
        return refuse(failure, VKRT_ERROR_MEMORY, b"a saved state: the host is out of memory")
    status = check_saved(failure, state, data, nbytes, header, expected)
    free(expected)
    if status == VKRT_OK and load_values(state, <const char*>data + header, &error):
        return failed(failure, &error)
    return status
