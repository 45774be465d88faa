"""The instance that all devices of the process share.

It lives while a device (or a listing of devices) uses it: destroying it is what makes some drivers
return their memory.

Environment:
    VKRT_VALIDATION: "1" turns the Khronos validation layer on, its synchronization validation with
        it; what becomes of its messages is in `vkrt.vk.messages`.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free, getenv
from libc.string cimport memset, strcmp

from vkrt.core.error cimport (
    VKRT_ERROR_LOADER, VKRT_ERROR_MEMORY, VKRT_OK, Error, fail, fail_call,
)
from vkrt.core.library cimport (
    keep_driver_libraries, library_version, open_library, say_no_driver,
)
from vkrt.core.live cimport INSTANCE, count
from vkrt.core.messages cimport describe_messenger
from vkrt.core.process cimport lock_instance, unlock_instance, unwatch, watch
from vkrt.core.results cimport check_result
from vkrt.core.table cimport fill_instance_table
from vkrt.core.vulkan cimport *

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
    static const VkBool32 vkrt_yes = 1;
    """
    const VkBool32 yes "vkrt_yes"
    VkStructureType LAYER_SETTINGS "VKRT_LAYER_SETTINGS"
    ctypedef struct LayerSetting "VkrtLayerSetting":
        const char* layer
        const char* name
        uint32_t count
        const void* values
    ctypedef struct LayerSettings "VkrtLayerSettings":
        const void* pNext
        uint32_t count
        const LayerSetting* settings

cdef Instance* shared


cdef struct Extensions:
    VkExtensionProperties* found
    uint32_t count


cdef int list_extensions(PFN_vkGetInstanceProcAddr entry, const char* layer,
                         Extensions* extensions, Error* error) noexcept nogil:
    """Those of the library and the drivers, or with a layer those of the layer. The caller frees
    what was found."""
    cdef PFN_vkEnumerateInstanceExtensionProperties function = (
        <PFN_vkEnumerateInstanceExtensionProperties>entry(
            NULL, b"vkEnumerateInstanceExtensionProperties"))
    cdef const char* call = b"vkEnumerateInstanceExtensionProperties"
    extensions.found, extensions.count = NULL, 0
    if check_result(function(layer, &extensions.count, NULL), call, error):
        return error.status
    extensions.found = <VkExtensionProperties*>calloc(
        extensions.count + 1, sizeof(VkExtensionProperties))
    if extensions.found == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"the names of extensions: the host is out of memory")
    return check_result(function(layer, &extensions.count, extensions.found), call, error)


cdef bint has_extension(const Extensions* extensions, const char* name) noexcept nogil:
    cdef uint32_t i
    for i in range(extensions.count):
        if strcmp(extensions.found[i].extensionName, name) == 0:
            return True
    return False


# What an instance is created with. It points into itself and must not be moved.
cdef struct Wish:
    VkApplicationInfo application
    VkInstanceCreateInfo info
    VkDebugUtilsMessengerCreateInfoEXT messenger
    LayerSettings settings
    LayerSetting[2] named
    VkValidationFeaturesEXT features
    VkValidationFeatureEnableEXT synchronization
    const char* extensions[3]
    const char* layers[1]


cdef void add_extension(Wish* wish, const char* name) noexcept nogil:
    wish.extensions[wish.info.enabledExtensionCount] = name
    wish.info.enabledExtensionCount += 1


cdef int write_wish(PFN_vkGetInstanceProcAddr entry, Wish* wish, Error* error) noexcept nogil:
    cdef Extensions extensions
    cdef uint32_t version = 0
    cdef int status
    memset(wish, 0, sizeof(wish[0]))
    if library_version(entry, &version, error):
        return error.status
    clear_struct(&wish.application, VK_STRUCTURE_TYPE_APPLICATION_INFO)
    wish.application.pApplicationName = b"vkrt"
    wish.application.pEngineName = b"vkrt"
    wish.application.apiVersion = min(version, <uint32_t>VK_API_VERSION_1_3)
    clear_struct(&wish.info, VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO)
    wish.info.pApplicationInfo = &wish.application
    wish.info.ppEnabledExtensionNames = wish.extensions
    wish.info.ppEnabledLayerNames = wish.layers
    status = list_extensions(entry, NULL, &extensions, error)
    if status == VKRT_OK and has_extension(&extensions, b"VK_KHR_portability_enumeration"):
        # Drivers that are not fully conformant (over Metal) are listed only on request.
        add_extension(wish, b"VK_KHR_portability_enumeration")
        wish.info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
    free(extensions.found)
    return status


cdef int wish_validation(PFN_vkGetInstanceProcAddr entry, Wish* wish,
                         Error* error) noexcept nogil:
    """The layer that validates, with what it looks at only when it is asked to: drivers that
    execute in order forgive every missing barrier, and the layer does not."""
    cdef Extensions offered
    cdef int status, i
    wish.layers[0] = b"VK_LAYER_KHRONOS_validation"
    wish.info.enabledLayerCount = 1
    add_extension(wish, b"VK_EXT_debug_utils")
    describe_messenger(&wish.messenger)
    wish.info.pNext = &wish.messenger  # for the messages of vkCreateInstance itself
    status = list_extensions(entry, wish.layers[0], &offered, error)
    if status != VKRT_OK:
        pass
    elif has_extension(&offered, b"VK_EXT_layer_settings"):
        add_extension(wish, b"VK_EXT_layer_settings")
        # Newer layers look at what shaders do only when asked to.
        wish.named[0].name = b"validate_sync"
        wish.named[1].name = b"syncval_shader_accesses_heuristic"
        for i in range(2):
            wish.named[i].layer = wish.layers[0]
            wish.named[i].count, wish.named[i].values = 1, &yes
        clear_struct(&wish.settings, LAYER_SETTINGS)
        wish.settings.count, wish.settings.settings = 2, wish.named
        wish.settings.pNext = wish.info.pNext
        wish.info.pNext = &wish.settings
    elif has_extension(&offered, b"VK_EXT_validation_features"):
        add_extension(wish, b"VK_EXT_validation_features")
        wish.synchronization = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
        clear_struct(&wish.features, VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT)
        wish.features.pNext = wish.info.pNext
        wish.features.enabledValidationFeatureCount = 1
        wish.features.pEnabledValidationFeatures = &wish.synchronization
        wish.info.pNext = &wish.features
    free(offered.found)
    return status


cdef int name_layer(Error* error) noexcept nogil:
    """Says which layer it is, where one is missing."""
    if error.result == VK_ERROR_LAYER_NOT_PRESENT:
        return fail_call(error, VKRT_ERROR_LOADER, 0, error.call, b"VKRT_VALIDATION=1 needs "
                         b"VK_LAYER_KHRONOS_validation; install it (Debian and Ubuntu: "
                         b"vulkan-validationlayers)")
    return error.status


cdef int create(Instance* instance, Error* error) noexcept nogil:
    cdef PFN_vkGetInstanceProcAddr entry
    cdef PFN_vkCreateInstance function
    cdef Wish wish
    cdef char[400] advice
    cdef const char* validation = getenv(b"VKRT_VALIDATION")
    cdef bint validate = validation != NULL and strcmp(validation, b"1") == 0
    cdef VkResult result
    if open_library(&entry, error) or write_wish(entry, &wish, error):
        return error.status
    if validate and wish_validation(entry, &wish, error):
        return name_layer(error)
    function = <PFN_vkCreateInstance>entry(NULL, b"vkCreateInstance")
    result = function(&wish.info, NULL, &instance.handle)
    if result == VK_ERROR_INCOMPATIBLE_DRIVER:
        return fail_call(error, VKRT_ERROR_LOADER, <int>result, b"vkCreateInstance",
                         b"there is no Vulkan driver: %s", say_no_driver(advice, sizeof(advice)))
    if check_result(result, b"vkCreateInstance", error):
        instance.handle = NULL
        return name_layer(error)
    instance.owned = True
    instance.api_version = wish.application.apiVersion
    count(INSTANCE, 1)
    keep_driver_libraries()
    if (fill_instance_table(&instance.vk, entry, instance.handle, error)
            or watch(&instance.calls, &instance.vk, sizeof(instance.vk), error)):
        return error.status
    if validate:
        return check_result(
            instance.vk.vkCreateDebugUtilsMessengerEXT(instance.handle, &wish.messenger, NULL,
                                                       &instance.messenger),
            b"vkCreateDebugUtilsMessengerEXT", error)
    return VKRT_OK


cdef void destroy(Instance* instance) noexcept nogil:
    if instance.handle != NULL and instance.owned:
        if instance.messenger != VK_NULL_HANDLE:
            instance.vk.vkDestroyDebugUtilsMessengerEXT(instance.handle, instance.messenger, NULL)
        if instance.vk.vkDestroyInstance != NULL:
            instance.vk.vkDestroyInstance(instance.handle, NULL)
        count(INSTANCE, -1)
    unwatch(&instance.calls)
    free(instance)


cdef Instance* new_instance(Error* error) noexcept nogil:
    cdef Instance* instance = <Instance*>calloc(1, sizeof(Instance))
    if instance == NULL:
        fail(error, VKRT_ERROR_MEMORY, b"a Vulkan instance: the host is out of memory")
    else:
        instance.users = 1
    return instance


cdef int acquire_instance(Instance** instance, Error* error) noexcept nogil:
    global shared
    cdef Instance* made
    cdef int status = VKRT_OK
    lock_instance()
    if shared != NULL and not shared.calls.inherited:
        shared.users += 1
    else:
        made = new_instance(error)
        if made == NULL:
            status = error.status
        elif create(made, error):
            status = error.status
            destroy(made)
        else:
            shared = made
    instance[0] = shared if status == VKRT_OK else NULL
    unlock_instance()
    return status


cdef int adopt_instance(VkInstance handle, PFN_vkGetInstanceProcAddr entry, Instance** instance,
                        Error* error) noexcept nogil:
    cdef Instance* made = new_instance(error)
    instance[0] = NULL
    if made == NULL:
        return error.status
    made.handle = handle
    # The version its maker asked for cannot be read back: the least that vkrt works with.
    made.api_version = VK_API_VERSION_1_1
    if (entry == NULL and open_library(&entry, error)
            or fill_instance_table(&made.vk, entry, handle, error)
            or watch(&made.calls, &made.vk, sizeof(made.vk), error)):
        destroy(made)
        return error.status
    instance[0] = made
    return VKRT_OK


cdef void retain_instance(Instance* instance) noexcept nogil:
    lock_instance()
    instance.users += 1
    unlock_instance()


cdef void release_instance(Instance* instance) noexcept nogil:
    global shared
    lock_instance()
    instance.users -= 1
    if instance.users == 0:
        if shared == instance:
            shared = NULL
        destroy(instance)
    unlock_instance()
