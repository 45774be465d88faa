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
    buffer made;
    VkBufferCreateInfo about = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    VkMemoryAllocateInfo allocation = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties has;
    VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    about.size = nbytes;
    about.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
                  | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    MUST(vkCreateBuffer(device, &about, NULL, &made.handle));
    vkGetBufferMemoryRequirements(device, made.handle, &needs);
    vkGetPhysicalDeviceMemoryProperties(physical, &has);
    while (!(needs.memoryTypeBits >> type & 1)
           || (has.memoryTypes[type].propertyFlags & wanted) != wanted)
        type++;
    allocation.allocationSize = needs.size, allocation.memoryTypeIndex = type;
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
    VkSemaphoreTypeCreateInfo kind = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    VkSemaphoreCreateInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    kind.semaphoreType = type;
    about.pNext = &kind;
    MUST(vkCreateSemaphore(device, &about, NULL, &made));
    return made;
}

static void raise_to(VkSemaphore line, uint64_t value) {
    VkSemaphoreSignalInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    about.semaphore = line, about.value = value;
    MUST(vkSignalSemaphore(device, &about));
}

static uint64_t value_of(VkSemaphore line) {
    uint64_t value = 0;
    MUST(vkGetSemaphoreCounterValue(device, line, &value));
    return value;
}

static void wait_until(VkSemaphore line, uint64_t value) {
    VkSemaphoreWaitInfo about = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    about.semaphoreCount = 1, about.pSemaphores = &line, about.pValues = &value;
    MUST(vkWaitSemaphores(device, &about, UINT64_MAX));
}

/* Submits nothing, behind one binary semaphore and before another, and waits for it. */
static void submit_nothing(const VkSemaphore *wait, const VkSemaphore *signal) {
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo about = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    about.waitSemaphoreCount = wait != NULL, about.pWaitSemaphores = wait;
    about.pWaitDstStageMask = &stage;
    about.signalSemaphoreCount = signal != NULL, about.pSignalSemaphores = signal;
    MUST(vkQueueSubmit(queue, 1, &about, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(queue));
}
