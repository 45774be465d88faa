/* A host's own device, made with what a test asks for, and as the library takes it. */
#include <vulkan/vulkan.h>

#include "expect.h"

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;

#define MUST(call) \
    do { \
        if ((call) != VK_SUCCESS) { \
            printf("line %d: %s\n", __LINE__, #call); \
            exit(1); \
        } \
    } while (0)

/* Of a version of Vulkan, with a chain of features or NULL. */
static void make_device(uint32_t version, const void *features) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = version};
    VkInstanceCreateInfo about_instance = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application};
    float priority = 1;
    VkDeviceQueueCreateInfo about_queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo about_device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, features,
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &about_queue};
    uint32_t count = 1;
    MUST(vkCreateInstance(&about_instance, NULL, &instance));
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || !count)
        exit(1);
    MUST(vkCreateDevice(physical, &about_device, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
}

static vkrt_host_device host_device(void) {
    return (vkrt_host_device){.size = sizeof(vkrt_host_device), .instance = instance,
                              .physical_device = physical, .device = device, .queue = queue};
}

/* It is still the host's. */
static void destroy_device(void) {
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
}
