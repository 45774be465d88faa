/* A host's own device, made with what a test asks for, and as the library takes it. */
#include <stdlib.h>
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
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    VkInstanceCreateInfo about_instance = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkDeviceQueueCreateInfo about_queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    VkDeviceCreateInfo about_device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    uint32_t count = 1;
    float priority = 1;
    application.apiVersion = version;
    about_instance.pApplicationInfo = &application;
    MUST(vkCreateInstance(&about_instance, NULL, &instance));
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || !count)
        exit(1);
    about_queue.queueCount = 1;
    about_queue.pQueuePriorities = &priority;
    about_device.pNext = features;
    about_device.queueCreateInfoCount = 1;
    about_device.pQueueCreateInfos = &about_queue;
    MUST(vkCreateDevice(physical, &about_device, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
}

static vkrt_host_device host_device(void) {
    vkrt_host_device host = {0};
    host.size = sizeof host;
    host.instance = instance, host.physical_device = physical;
    host.device = device, host.queue = queue;
    return host;
}

/* It is still the host's. */
static void destroy_device(void) {
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
}
