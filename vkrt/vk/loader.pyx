# cython: language_level=3
"""The Vulkan library and the instance that all devices of the process share.

The library is opened with dlopen on first use, so that importing vkrt needs no Vulkan. The instance
lives while a device (or a listing of devices) uses it: destroying it is what makes some drivers
return their memory.

Environment:
    VKRT_VULKAN_LIBRARY: path or name of the library, instead of the usual names.
    VKRT_VALIDATION: "1" turns the Khronos validation layer on, its synchronization validation with
        it; what becomes of its messages is in `vkrt.vk.messages`.
"""

import os

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym

from vkrt.vk.api cimport *
from vkrt.vk.check cimport INSTANCE, check, count
from vkrt.vk.messages cimport describe_messenger
from vkrt.vk.process cimport unwatch, watch
from vkrt.vk.table cimport fill_instance_table

from vkrt.errors import LoaderError

LIBRARIES = ("libvulkan.so.1", "libvulkan.so")
INSTALL = ("install the Vulkan loader and a driver (Debian and Ubuntu: libvulkan1 and "
           "mesa-vulkan-drivers)")
VALIDATION_LAYER = b"VK_LAYER_KHRONOS_validation"

cdef extern from * nogil:
    """
    /* VK_EXT_layer_settings, which headers before 1.3.272 lack */
    typedef struct {
      const char* layer;
      const char* name;
      int type;  /* 0: VkBool32 */
      uint32_t count;
      const void* values;
    } VkrtLayerSetting;
    typedef struct {
      VkStructureType sType;
      const void* pNext;
      uint32_t count;
      const VkrtLayerSetting* settings;
    } VkrtLayerSettings;
    #define VKRT_LAYER_SETTINGS ((VkStructureType)1000496000)
    """
    VkStructureType LAYER_SETTINGS "VKRT_LAYER_SETTINGS"
    ctypedef struct LayerSetting "VkrtLayerSetting":
        const char* layer
        const char* name
        uint32_t count
        const void* values
    ctypedef struct LayerSettings "VkrtLayerSettings":
        VkStructureType sType
        const void* pNext
        uint32_t count
        const LayerSetting* settings

cdef VkBool32 yes = 1
cdef PFN_vkGetInstanceProcAddr library_entry = NULL
cdef Instance shared = None


def no_driver():
    """Why the library finds no driver, and what to do, for messages: the environment may name other
    drivers than there are."""
    # The first is the newer name, and goes before the second where the library knows it.
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        named = os.environ.get(variable)
        if named:
            missing = [path for path in named.split(os.pathsep) if not os.path.exists(path)]
            said = f"{', '.join(missing)} is not there" if missing else "none of these works here"
            return (f"{variable}={named} says which drivers are used, and {said}; correct it, or "
                    f"unset it and {INSTALL}")
    return f"please {INSTALL}"


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
    cdef PFN_vkEnumerateInstanceVersion function = <PFN_vkEnumerateInstanceVersion>entry(
        NULL, b"vkEnumerateInstanceVersion")
    cdef uint32_t version = 0
    if function == NULL:
        raise LoaderError("the Vulkan library is of version 1.0; vkrt needs 1.1",
                          call="vkEnumerateInstanceVersion")
    check(function(&version), b"vkEnumerateInstanceVersion")
    return version


cdef set instance_extensions(PFN_vkGetInstanceProcAddr entry, const char* layer):
    """Those of the library and the drivers, or with a layer those of the layer."""
    cdef PFN_vkEnumerateInstanceExtensionProperties function = (
        <PFN_vkEnumerateInstanceExtensionProperties>entry(
            NULL, b"vkEnumerateInstanceExtensionProperties"))
    cdef uint32_t number = 0
    check(function(layer, &number, NULL), b"vkEnumerateInstanceExtensionProperties")
    cdef VkExtensionProperties* found = <VkExtensionProperties*>calloc(
        number + 1, sizeof(VkExtensionProperties))
    if found == NULL:
        raise MemoryError
    try:
        check(function(layer, &number, found), b"vkEnumerateInstanceExtensionProperties")
        return {<bytes>found[i].extensionName for i in range(number)}
    finally:
        free(found)


cdef set instance_layers(PFN_vkGetInstanceProcAddr entry):
    cdef PFN_vkEnumerateInstanceLayerProperties function = (
        <PFN_vkEnumerateInstanceLayerProperties>entry(
            NULL, b"vkEnumerateInstanceLayerProperties"))
    cdef uint32_t number = 0
    check(function(&number, NULL), b"vkEnumerateInstanceLayerProperties")
    cdef VkLayerProperties* found = <VkLayerProperties*>calloc(
        number + 1, sizeof(VkLayerProperties))
    if found == NULL:
        raise MemoryError
    try:
        check(function(&number, found), b"vkEnumerateInstanceLayerProperties")
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
        cdef LayerSettings settings
        cdef LayerSetting named[2]
        cdef VkValidationFeaturesEXT features
        cdef VkValidationFeatureEnableEXT synchronization = (
            VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT)
        cdef const char* extensions[3]
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
        if b"VK_KHR_portability_enumeration" in instance_extensions(entry, NULL):
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
            # Drivers that execute in order forgive every missing barrier: the layer does not.
            offered = instance_extensions(entry, layers[0])
            if b"VK_EXT_layer_settings" in offered:
                extensions[info.enabledExtensionCount] = b"VK_EXT_layer_settings"
                info.enabledExtensionCount += 1
                describe_settings(&settings, named)
                settings.pNext = info.pNext
                info.pNext = &settings
            elif b"VK_EXT_validation_features" in offered:
                extensions[info.enabledExtensionCount] = b"VK_EXT_validation_features"
                info.enabledExtensionCount += 1
                memset(&features, 0, sizeof(features))
                features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT
                features.pNext = info.pNext
                features.enabledValidationFeatureCount = 1
                features.pEnabledValidationFeatures = &synchronization
                info.pNext = &features
        result = create(&info, NULL, &handle)
        if result == VK_ERROR_INCOMPATIBLE_DRIVER:
            raise LoaderError(f"there is no Vulkan driver: {no_driver()}", <int>result,
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


cdef void describe_settings(LayerSettings* settings, LayerSetting* named) noexcept:
    """Newer layers look at what shaders do only when asked to."""
    memset(settings, 0, sizeof(settings[0]))
    memset(named, 0, 2 * sizeof(named[0]))
    named[0].name = b"validate_sync"
    named[1].name = b"syncval_shader_accesses_heuristic"
    for index in range(2):
        named[index].layer = b"VK_LAYER_KHRONOS_validation"
        named[index].count = 1
        named[index].values = &yes
    settings.sType = LAYER_SETTINGS
    settings.count = 2
    settings.settings = named
