# cython: language_level=3
"""The Vulkan library and the instance that all devices of the process share.

The library is opened with dlopen on first use, so that importing vkrt needs no Vulkan. The instance
lives while a device (or a listing of devices) uses it: destroying it is what makes some drivers
return their memory.

Environment:
    VKRT_VULKAN_LIBRARY: path or name of the library, instead of the usual names.
    VKRT_VALIDATION: "1" turns the Khronos validation layer on and collects its messages.
"""

import os

cimport cython
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_release_lock, PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strdup
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym

from vkrt.vk.api cimport *
from vkrt.vk.check cimport INSTANCE, check, count
from vkrt.vk.process cimport unwatch, watch
from vkrt.vk.table cimport fill_instance_table

from vkrt.errors import LoaderError

LIBRARIES = ("libvulkan.so.1", "libvulkan.so")
INSTALL = ("install the Vulkan loader and a driver (Debian and Ubuntu: libvulkan1 and "
           "mesa-vulkan-drivers)")
VALIDATION_LAYER = b"VK_LAYER_KHRONOS_validation"

cdef PFN_vkGetInstanceProcAddr library_entry = NULL
cdef Instance shared = None


cdef PFN_vkGetInstanceProcAddr entry_point() except NULL:
    global library_entry
    if library_entry != NULL:
        return library_entry
    cdef void* library = NULL
    cdef const char* reason
    chosen = os.environ.get("VKRT_VULKAN_LIBRARY")
    tried = []
    for name in (chosen,) if chosen else LIBRARIES:
        library = dlopen(os.fsencode(name), RTLD_NOW | RTLD_LOCAL)
        if library != NULL:
            break
        reason = dlerror()
        tried.append(reason.decode(errors="replace") if reason != NULL else name)
    if library == NULL:
        advice = "check VKRT_VULKAN_LIBRARY" if chosen else INSTALL
        raise LoaderError(f"no Vulkan library: {'; '.join(tried)}. Please {advice}.",
                          call="dlopen")
    # Never closed again: drivers leave threads and exit handlers behind.
    library_entry = <PFN_vkGetInstanceProcAddr>dlsym(library, b"vkGetInstanceProcAddr")
    if library_entry == NULL:
        raise LoaderError(f"{chosen or 'libvulkan'} is not a Vulkan library: it has no "
                          "vkGetInstanceProcAddr", call="dlsym")
    return library_entry


cdef uint32_t library_version(PFN_vkGetInstanceProcAddr entry) except 0:
    cdef PFN_vkEnumerateInstanceVersion ask = <PFN_vkEnumerateInstanceVersion>entry(
        NULL, b"vkEnumerateInstanceVersion")
    cdef uint32_t version = 0
    if ask == NULL:
        raise LoaderError("the Vulkan library is of version 1.0; vkrt needs 1.1",
                          call="vkEnumerateInstanceVersion")
    check(ask(&version), b"vkEnumerateInstanceVersion")
    return version


cdef set instance_extensions(PFN_vkGetInstanceProcAddr entry):
    cdef PFN_vkEnumerateInstanceExtensionProperties ask = (
        <PFN_vkEnumerateInstanceExtensionProperties>entry(
            NULL, b"vkEnumerateInstanceExtensionProperties"))
    cdef uint32_t number = 0
    check(ask(NULL, &number, NULL), b"vkEnumerateInstanceExtensionProperties")
    cdef VkExtensionProperties* found = <VkExtensionProperties*>calloc(
        number + 1, sizeof(VkExtensionProperties))
    if found == NULL:
        raise MemoryError
    try:
        check(ask(NULL, &number, found), b"vkEnumerateInstanceExtensionProperties")
        return {<bytes>found[i].extensionName for i in range(number)}
    finally:
        free(found)


cdef set instance_layers(PFN_vkGetInstanceProcAddr entry):
    cdef PFN_vkEnumerateInstanceLayerProperties ask = (
        <PFN_vkEnumerateInstanceLayerProperties>entry(
            NULL, b"vkEnumerateInstanceLayerProperties"))
    cdef uint32_t number = 0
    check(ask(&number, NULL), b"vkEnumerateInstanceLayerProperties")
    cdef VkLayerProperties* found = <VkLayerProperties*>calloc(
        number + 1, sizeof(VkLayerProperties))
    if found == NULL:
        raise MemoryError
    try:
        check(ask(&number, found), b"vkEnumerateInstanceLayerProperties")
        return {<bytes>found[i].layerName for i in range(number)}
    finally:
        free(found)


@cython.no_gc_clear
cdef class Instance:
    """A VkInstance, counted by its users."""

    cdef int create(self) except -1:
        """Creates the process's own instance.

        Raises:
            LoaderError: no library, no driver, or validation asked for and not installed.
        """
        cdef PFN_vkGetInstanceProcAddr entry = entry_point()
        cdef PFN_vkCreateInstance create = <PFN_vkCreateInstance>entry(NULL, b"vkCreateInstance")
        cdef VkApplicationInfo application
        cdef VkInstanceCreateInfo info
        cdef VkDebugUtilsMessengerCreateInfoEXT messenger
        cdef const char* extensions[2]
        cdef const char* layers[1]
        cdef VkInstance handle = NULL
        cdef bint validate = os.environ.get("VKRT_VALIDATION") == "1"

        memset(&application, 0, sizeof(application))
        memset(&info, 0, sizeof(info))
        application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO
        application.pApplicationName = b"vkrt"
        application.pEngineName = b"vkrt"
        application.apiVersion = min(library_version(entry), <uint32_t>VK_API_VERSION_1_3)
        info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO
        info.pApplicationInfo = &application
        info.ppEnabledExtensionNames = extensions
        info.ppEnabledLayerNames = layers
        if b"VK_KHR_portability_enumeration" in instance_extensions(entry):
            # Drivers that are not fully conformant (over Metal) are listed only on request.
            extensions[info.enabledExtensionCount] = b"VK_KHR_portability_enumeration"
            info.enabledExtensionCount += 1
            info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
        if validate:
            if VALIDATION_LAYER not in instance_layers(entry):
                raise LoaderError("VKRT_VALIDATION=1 needs VK_LAYER_KHRONOS_validation; install "
                                  "it (Debian and Ubuntu: vulkan-validationlayers)",
                                  call="vkEnumerateInstanceLayerProperties")
            layers[0] = b"VK_LAYER_KHRONOS_validation"
            info.enabledLayerCount = 1
            extensions[info.enabledExtensionCount] = b"VK_EXT_debug_utils"
            info.enabledExtensionCount += 1
            describe_messenger(&messenger)
            info.pNext = &messenger  # for the messages of vkCreateInstance itself
        result = create(&info, NULL, &handle)
        if result == VK_ERROR_INCOMPATIBLE_DRIVER:
            raise LoaderError(f"there is no Vulkan driver; please {INSTALL}", <int>result,
                              "vkCreateInstance")
        check(result, b"vkCreateInstance")
        self.handle = handle
        self.owned = True
        self.api_version = application.apiVersion
        count(INSTANCE, 1)
        fill_instance_table(&self.vk, entry, handle)
        watch(&self.calls, &self.vk, sizeof(self.vk))
        if validate:
            check(self.vk.vkCreateDebugUtilsMessengerEXT(handle, &messenger, NULL,
                                                         &self.messenger),
                  b"vkCreateDebugUtilsMessengerEXT")
        return 0

    cdef void release(self) noexcept:
        """One user less; the last one destroys an owned instance."""
        global shared
        self.users -= 1
        if self.users > 0:
            return
        if shared is self:
            shared = None
        self.destroy()

    cdef void destroy(self) noexcept:
        if self.handle != NULL and self.owned:
            if self.messenger != NULL:
                self.vk.vkDestroyDebugUtilsMessengerEXT(self.handle, self.messenger, NULL)
            if self.vk.vkDestroyInstance != NULL:
                self.vk.vkDestroyInstance(self.handle, NULL)
            count(INSTANCE, -1)
        self.handle = NULL
        unwatch(&self.calls)

    def __dealloc__(self):
        self.destroy()


cdef Instance acquire_instance():
    global shared
    cdef Instance instance = shared
    if instance is None or instance.calls.inherited:
        instance = Instance.__new__(Instance)
        instance.create()
        shared = instance
    instance.users += 1
    return instance


cdef Instance adopt_instance(VkInstance handle, PFN_vkGetInstanceProcAddr entry):
    cdef Instance instance = Instance.__new__(Instance)
    instance.handle = handle
    # The version its maker asked for cannot be read back: the least that vkrt works with.
    instance.api_version = VK_API_VERSION_1_1
    fill_instance_table(&instance.vk, entry if entry != NULL else entry_point(), handle)
    watch(&instance.calls, &instance.vk, sizeof(instance.vk))
    instance.users = 1
    return instance


# Validation messages arrive on any thread, some of them while the layer holds locks of its own.
# Taking the GIL there could deadlock, so they are kept in C until they are asked for.
cdef PyThread_type_lock messages_lock = PyThread_allocate_lock()
cdef char* messages[1000]
cdef int message_count = 0


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
    global message_count
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    if message_count < 1000:
        messages[message_count] = strdup(data.pMessage)
        if messages[message_count] != NULL:
            message_count += 1
    PyThread_release_lock(messages_lock)
    return 0


def validation_messages():
    """Warnings and errors of the validation layer so far (the first 1000), as a list of str.

    Empty unless VKRT_VALIDATION=1 was set when the first device was opened.
    """
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    try:
        return [messages[i].decode(errors="replace") for i in range(message_count)]
    finally:
        PyThread_release_lock(messages_lock)


def clear_validation_messages():
    """Forgets the validation messages so far."""
    global message_count
    PyThread_acquire_lock(messages_lock, WAIT_LOCK)
    for i in range(message_count):
        free(messages[i])
    message_count = 0
    PyThread_release_lock(messages_lock)
