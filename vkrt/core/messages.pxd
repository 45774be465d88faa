"""Messages of the validation layer, kept until somebody asks for them."""

from vkrt.core.vulkan cimport VkDebugUtilsMessengerCreateInfoEXT

cdef struct Message:
    char* id  # the layer's name of what is wrong
    char* text
    bint error

cdef enum:
    MAX_MESSAGES = 1000

cdef extern nogil:
    void describe_messenger "vkrt_describe_messenger"(VkDebugUtilsMessengerCreateInfoEXT* info)
    # The messages stay as they are from `hold_messages`, which tells how many are kept and how many
    # came after those, to `let_messages_go`.
    const Message* hold_messages "vkrt_hold_messages"(int* number, int* lost)
    void let_messages_go "vkrt_let_messages_go"()
    void clear_messages "vkrt_clear_messages"()
