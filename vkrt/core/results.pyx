from vkrt.core.error cimport VKRT_OK, Error, fail_call

cdef extern from * nogil:
    """
    #include "vkrt.h"
    #define VK_NO_PROTOTYPES
    #include <vulkan/vulkan_core.h>
    typedef struct { int result; int status; const char* name; const char* text; } VkrtMeaning;
    #define VKRT_NAMED(name, status, text) {name, status, #name, text}
    static const VkrtMeaning vkrt_meanings[] = {
      VKRT_NAMED(VK_ERROR_OUT_OF_HOST_MEMORY, VKRT_ERROR_DEVICE_MEMORY,
                 "the driver is out of host memory"),
      VKRT_NAMED(VK_ERROR_OUT_OF_DEVICE_MEMORY, VKRT_ERROR_DEVICE_MEMORY, "out of device memory"),
      VKRT_NAMED(VK_ERROR_DEVICE_LOST, VKRT_ERROR_DEVICE_LOST, "the device was lost"),
      VKRT_NAMED(VK_ERROR_INCOMPATIBLE_DRIVER, VKRT_ERROR_LOADER, "no usable Vulkan driver"),
      VKRT_NAMED(VK_ERROR_INITIALIZATION_FAILED, VKRT_ERROR_DEVICE, "the driver could not start"),
      VKRT_NAMED(VK_ERROR_MEMORY_MAP_FAILED, VKRT_ERROR_DEVICE, "memory could not be mapped"),
      VKRT_NAMED(VK_ERROR_LAYER_NOT_PRESENT, VKRT_ERROR_DEVICE, "a layer is not installed"),
      VKRT_NAMED(VK_ERROR_EXTENSION_NOT_PRESENT, VKRT_ERROR_DEVICE, "an extension is missing"),
      VKRT_NAMED(VK_ERROR_FEATURE_NOT_PRESENT, VKRT_ERROR_DEVICE, "a device feature is missing"),
      VKRT_NAMED(VK_ERROR_TOO_MANY_OBJECTS, VKRT_ERROR_DEVICE, "too many objects of this kind"),
      VKRT_NAMED(VK_ERROR_FORMAT_NOT_SUPPORTED, VKRT_ERROR_DEVICE, "the format is not supported"),
      VKRT_NAMED(VK_ERROR_FRAGMENTED_POOL, VKRT_ERROR_DEVICE, "the descriptor pool is fragmented"),
      VKRT_NAMED(VK_ERROR_OUT_OF_POOL_MEMORY, VKRT_ERROR_DEVICE, "the descriptor pool is full"),
      VKRT_NAMED(VK_ERROR_INVALID_EXTERNAL_HANDLE, VKRT_ERROR_DEVICE,
                 "the memory cannot be imported"),
      VKRT_NAMED(VK_ERROR_FRAGMENTATION, VKRT_ERROR_DEVICE, "the descriptor pool is fragmented"),
      VKRT_NAMED(VK_ERROR_INVALID_SHADER_NV, VKRT_ERROR_DEVICE, "the driver refuses the shader"),
      VKRT_NAMED(VK_ERROR_VALIDATION_FAILED_EXT, VKRT_ERROR_DEVICE,
                 "the validation layer refuses the call"),
      VKRT_NAMED(VK_ERROR_UNKNOWN, VKRT_ERROR_DEVICE, "the driver does not say what failed"),
      {VKRT_CALL_FORKED, VKRT_ERROR_FORKED, "not called",
       "the device was opened before this process was forked; open it, or load the program, after "
       "the fork"},
      {0, VKRT_ERROR_DEVICE, "", "failed"}
    };
    """
    ctypedef struct Meaning "VkrtMeaning":
        int result
        int status
        const char* name
        const char* text  # what it means to the user
    const Meaning* meanings "vkrt_meanings"


cdef int check_result(int result, const char* call, Error* error) noexcept nogil:
    cdef const Meaning* meaning = meanings
    if result >= 0:
        return VKRT_OK
    while meaning.result != 0 and meaning.result != result:
        meaning += 1
    if meaning.result == 0:
        return fail_call(error, meaning.status, result, call, b"%s: %s (VkResult %d)", call,
                         meaning.text, result)
    return fail_call(error, meaning.status, result, call, b"%s: %s (%s)", call, meaning.text,
                     meaning.name)
