/* Values of inputs and outputs, and buffers and semaphores of a host's device. */
#include "device.h"

enum { GUARD = 0xa5, MOST = 8 };

/* What goes in and what comes out */
typedef struct {
    size_t count, nbytes[MOST];
    char *data[MOST];
} values;

static void free_values(values *found) {
    while (found->count)
        free(found->data[--found->count]);
}

typedef struct {
    VkBuffer handle;
    VkDeviceMemory memory;
    unsigned char *bytes;
} buffer;

static buffer make_buffer(size_t nbytes) {
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkBufferCreateInfo about = {
        VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = nbytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
                 | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryAllocateInfo allocation = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties has;
    buffer made;
    MUST(vkCreateBuffer(device, &about, NULL, &made.handle));
    vkGetBufferMemoryRequirements(device, made.handle, &needs);
    vkGetPhysicalDeviceMemoryProperties(physical, &has);
    while (!(needs.memoryTypeBits >> allocation.memoryTypeIndex & 1)
           || (has.memoryTypes[allocation.memoryTypeIndex].propertyFlags & wanted) != wanted)
        allocation.memoryTypeIndex++;
    allocation.allocationSize = needs.size;
    MUST(vkAllocateMemory(device, &allocation, NULL, &made.memory));
    MUST(vkBindBufferMemory(device, made.handle, made.memory, 0));
    MUST(vkMapMemory(device, made.memory, 0, VK_WHOLE_SIZE, 0, (void **)&made.bytes));
    memset(made.bytes, GUARD, nbytes);
    return made;
}

static void destroy(buffer *made) {
    vkDestroyBuffer(device, made->handle, NULL);
    vkFreeMemory(device, made->memory, NULL);
}

static VkSemaphore make_semaphore(VkSemaphoreType type) {
    VkSemaphore made;
    VkSemaphoreTypeCreateInfo kind = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = type};
    VkSemaphoreCreateInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &kind};
    MUST(vkCreateSemaphore(device, &about, NULL, &made));
    return made;
}

static void raise_to(VkSemaphore line, uint64_t value) {
    VkSemaphoreSignalInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, NULL, line, value};
    MUST(vkSignalSemaphore(device, &about));
}

static uint64_t value_of(VkSemaphore line) {
    uint64_t value = 0;
    MUST(vkGetSemaphoreCounterValue(device, line, &value));
    return value;
}

static void wait_until(VkSemaphore line, uint64_t value) {
    VkSemaphoreWaitInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1,
                                 .pSemaphores = &line, .pValues = &value};
    MUST(vkWaitSemaphores(device, &about, UINT64_MAX));
}

/* Submits nothing, behind one binary semaphore and before another, and waits for it. */
static void submit_nothing(const VkSemaphore *wait, const VkSemaphore *signal) {
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo about = {
        VK_STRUCTURE_TYPE_SUBMIT_INFO, .waitSemaphoreCount = wait != NULL, .pWaitSemaphores = wait,
        .pWaitDstStageMask = &stage, .signalSemaphoreCount = signal != NULL,
        .pSignalSemaphores = signal};
    MUST(vkQueueSubmit(queue, 1, &about, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(queue));
}
