"""How the core says what went wrong: a status that is returned, a text that the caller keeps."""

from libc.stdint cimport uint64_t

cdef extern from "vkrt.h" nogil:
    # Those of the C library
    enum:
        VKRT_OK, VKRT_ERROR_CLOSED, VKRT_ERROR_INPUT, VKRT_ERROR_CAPACITY, VKRT_ERROR_FORMAT
        VKRT_ERROR_UNSUPPORTED, VKRT_ERROR_SYSTEM, VKRT_ERROR_MEMORY, VKRT_ERROR_LOADER
        VKRT_ERROR_DEVICE, VKRT_ERROR_DEVICE_MEMORY, VKRT_ERROR_DEVICE_LOST, VKRT_ERROR_FORKED
        VKRT_ERROR_STATE, VKRT_ERROR_CANCELLED, VKRT_ERROR_INTERNAL

cdef extern from * nogil:
    """
    #ifndef VKRT_CORE_ERROR
    #define VKRT_CORE_ERROR
    #include <stdio.h>
    #include <stdint.h>
    typedef struct { uint64_t asked, budget, in_use; int heap; } VkrtShortage;
    typedef struct {
        int status; int result; const char* call; VkrtShortage shortage; char text[480];
    } VkrtError;
    /* The compiler checks the format; the value is the status. */
    #define VKRT_FAIL_CALL(error, code, value, name, ...) \\
        (snprintf((error)->text, sizeof (error)->text, __VA_ARGS__), (error)->result = (value), \\
         (error)->call = (name), (error)->shortage.asked = 0, (error)->status = (code))
    #define VKRT_FAIL(error, code, ...) VKRT_FAIL_CALL(error, code, 0, "", __VA_ARGS__)
    #endif
    """
    # Of device memory, in bytes
    ctypedef struct Shortage "VkrtShortage":
        uint64_t asked  # 0: nothing of it is known
        uint64_t budget  # what the driver grants this process on the heap
        uint64_t in_use  # what vkrt held on the heap
        int heap
    # Filled only where a function returns another status than VKRT_OK.
    ctypedef struct Error "VkrtError":
        int status
        int result  # the VkResult of a Vulkan call that failed, else 0 ..
        const char* call  # .. and the function's name, or that of another call that failed, else ""
        Shortage shortage  # where the status is VKRT_ERROR_DEVICE_MEMORY
        char text[480]  # ends with a zero; longer ones are cut
    int fail "VKRT_FAIL"(Error* error, int status, const char* form, ...) noexcept
    # With the VkResult and the name of the call (which is not copied).
    int fail_call "VKRT_FAIL_CALL"(Error* error, int status, int result, const char* call,
                                   const char* form, ...) noexcept

# Refuses what was closed: drivers crash on a handle that is null.
cdef inline int need(bint has_handle, Error* error) noexcept nogil:
    if not has_handle:
        return fail(error, VKRT_ERROR_CLOSED, b"an object of this call is closed")
    return VKRT_OK
