# cython: language_level=3
"""Messages of the validation layer, and of the loader and drivers while it is on.

They arrive on any thread, some of them while the layer holds locks of its own. Taking the GIL there
could deadlock, so they are written and kept in C until they are asked for.
"""

import os
from collections import namedtuple

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_release_lock, PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdio cimport fprintf, snprintf, stderr
from libc.stdlib cimport free, malloc
from libc.string cimport memset, strcmp, strdup, strlen, strstr

from vkrt.vk.api cimport *


cdef struct Message:
    char* id
    char* text
    bint error

cdef enum:
    MAX_MESSAGES = 1000

cdef PyThread_type_lock messages_lock = PyThread_allocate_lock()
cdef Message messages[MAX_MESSAGES]
cdef int message_count = 0
cdef int messages_lost = 0


def renew_lock():
    """In a forked child: a thread that it does not have may hold the lock."""
    global messages_lock
    messages_lock = PyThread_allocate_lock()


os.register_at_fork(after_in_child=renew_lock)


cdef void describe_messenger(VkDebugUtilsMessengerCreateInfoEXT* info) noexcept:
    memset(info, 0, sizeof(info[0]))
    info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT
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
    cdef bint error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
                       and types & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT)
    cdef bint known = False
    cdef Message message
    if data.pMessageIdName != NULL:
        name = data.pMessageIdName
    message.id = strdup(name)
    message.text = text_of(name, data.pMessage)
    message.error = error
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    for i in range(message_count):
        if strcmp(messages[i].id, name) == 0:
            known = True
            break
    if not known and message.text != NULL:
        fprintf(stderr, b"vkrt: validation %s: %s\n", b"error" if error else b"warning",
                message.text)
    if message_count < MAX_MESSAGES and message.id != NULL and message.text != NULL:
        messages[message_count] = message
        message_count += 1
    else:
        free(message.id)
        free(message.text)
        messages_lost += 1
    PyThread_release_lock(messages_lock)
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


# The messages with one id: the layer's name of what is wrong, whether the layer calls it an error
# (if not, it is a warning, or a word of the loader's), how often it came, and the first message.
Finding = namedtuple("Finding", ("id", "error", "times", "text"))


def validation_messages():
    """Warnings and errors of the validation layer so far (the first 1000), as a list of str.

    Empty unless VKRT_VALIDATION=1 was set when the first device was opened. The first message of
    every id was also written to stderr when it came.
    """
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    try:
        return [messages[i].text.decode(errors="replace") for i in range(message_count)]
    finally:
        PyThread_release_lock(messages_lock)


def validation_findings():
    """The same by their ids, in the order of the first ones, as a list of `Finding`; what came
    after the first 1000 messages is one finding more."""
    found = {}
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    try:
        for i in range(message_count):
            key = messages[i].id.decode(errors="replace"), bool(messages[i].error)
            text, number = found.get(key, (None, 0))
            if text is None:
                text = messages[i].text.decode(errors="replace")
            found[key] = text, number + 1
        findings = [Finding(*key, number, text) for key, (text, number) in found.items()]
        if messages_lost:
            findings.append(Finding("", False, messages_lost,
                                    f"not kept: what came after {MAX_MESSAGES} messages"))
        return findings
    finally:
        PyThread_release_lock(messages_lock)


def clear_validation_messages():
    """Forgets the validation messages so far."""
    global message_count, messages_lost
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    for i in range(message_count):
        free(messages[i].id)
        free(messages[i].text)
    message_count = messages_lost = 0
    PyThread_release_lock(messages_lock)
