"""They arrive on any thread, some of them while the layer holds locks of its own."""

from libc.stdio cimport fprintf, snprintf, stderr
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp, strdup, strlen, strstr

from vkrt.core.threads cimport (
    pthread_atfork, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock,
)
from vkrt.core.vulkan cimport *

cdef extern from * nogil:
    """
    static pthread_mutex_t vkrt_messages_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t messages_lock "vkrt_messages_lock"

cdef Message[MAX_MESSAGES] messages
cdef int message_count
cdef int messages_lost
cdef bint renews_lock


cdef void renew_lock() noexcept nogil:
    """In a forked child: a thread that it does not have may hold the lock."""
    pthread_mutex_init(&messages_lock, NULL)


cdef void describe_messenger(VkDebugUtilsMessengerCreateInfoEXT* info) noexcept nogil:
    global renews_lock
    if not renews_lock and pthread_atfork(NULL, NULL, renew_lock) == 0:
        renews_lock = True
    clear_struct(info, VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT)
    info.messageSeverity = (VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
                            | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)
    info.messageType = (VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT
                        | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)
    info.pfnUserCallback = keep_message


cdef VkBool32 keep_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkFlags types,
                           const VkDebugUtilsMessengerCallbackDataEXT* data,
                           void* user) noexcept nogil:
    """Keeps a message, and writes the first one with its id to stderr: with a messenger of ours the
    layer writes nothing itself, and a process that ends in the driver tells nothing later."""
    global message_count, messages_lost
    cdef const char* name = b""
    cdef bint known = False
    cdef Message message
    if data.pMessageIdName != NULL:
        name = data.pMessageIdName
    message.id = strdup(name)
    message.text = text_of(name, data.pMessage)
    message.error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
                     and types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)
    pthread_mutex_lock(&messages_lock)
    for i in range(message_count):
        if strcmp(messages[i].id, name) == 0:
            known = True
            break
    if not known and message.text != NULL:
        fprintf(stderr, b"vkrt: validation %s: %s\n", b"error" if message.error else b"warning",
                message.text)
    if message_count < MAX_MESSAGES and message.id != NULL and message.text != NULL:
        messages[message_count] = message
        message_count += 1
    else:
        free(message.id)
        free(message.text)
        messages_lost += 1
    pthread_mutex_unlock(&messages_lock)
    return 0


cdef char* text_of(const char* name, const char* text) noexcept nogil:
    """The message, with its id in front where it is not in it: newer layers leave it out."""
    cdef size_t length
    cdef char* result
    if strstr(text, name) != NULL:
        return strdup(text)
    length = strlen(name) + strlen(text) + 3
    result = <char*>malloc(length)
    if result != NULL:
        snprintf(result, length, b"%s: %s", name, text)
    return result


cdef const Message* hold_messages(int* number, int* lost) noexcept nogil:
    pthread_mutex_lock(&messages_lock)
    number[0], lost[0] = message_count, messages_lost
    return messages


cdef void let_messages_go() noexcept nogil:
    pthread_mutex_unlock(&messages_lock)


cdef void clear_messages() noexcept nogil:
    global message_count, messages_lost
    pthread_mutex_lock(&messages_lock)
    for i in range(message_count):
        free(messages[i].id)
        free(messages[i].text)
    message_count = messages_lost = 0
    pthread_mutex_unlock(&messages_lock)
