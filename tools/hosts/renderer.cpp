// A host with a Vulkan device of its own: its shader draws a picture, vkrt enlarges that on the same
// queue, and another shader of the host measures the result. The pictures stay in device memory.
//
//     glslc -mfmt=c pattern.comp -o pattern.inc && glslc -mfmt=c measure.comp -o measure.inc
//     c++ renderer.cpp -o renderer -I. $(vkrt-config --cflags --libs) -lvulkan
//     ./renderer upscaler.pte [FRAMES]
#include <vulkan/vulkan.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "vkrt.h"

static const uint32_t pattern_code[] =
#include "pattern.inc"
    ;
static const uint32_t measure_code[] =
#include "measure.inc"
    ;

static void check(VkResult result, const char *what) {
    if (result < 0)
        throw std::runtime_error(std::string(what) + ": VkResult " + std::to_string(result));
}

static void check(int code) {
    if (code != VKRT_OK)
        throw std::runtime_error(vkrt_last_error_text());
}

struct Device {
    VkInstance instance{};
    VkPhysicalDevice physical{};
    VkDevice handle{};
    VkQueue queue{};
    uint32_t family{};

    Device() {
        const VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, nullptr, 0,
                                            nullptr, 0, VK_API_VERSION_1_2};
        const VkInstanceCreateInfo about{
            VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application};
        check(vkCreateInstance(&about, nullptr, &instance), "vkCreateInstance");
        uint32_t count = 1;
        check(vkEnumeratePhysicalDevices(instance, &count, &physical), "vkEnumeratePhysicalDevices");
        if (count == 0)
            throw std::runtime_error("no Vulkan device");
        VkQueueFamilyProperties families[16];
        uint32_t number = 16;
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &number, families);
        while (family < number && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT))
            family++;
        const float priority = 1;
        const VkDeviceQueueCreateInfo queues{
            VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family, 1, &priority};
        VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, nullptr, VK_TRUE};
        const VkDeviceCreateInfo made{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &timeline, 0,
                                      1, &queues};
        check(vkCreateDevice(physical, &made, nullptr, &handle), "vkCreateDevice");
        vkGetDeviceQueue(handle, family, 0, &queue);
    }

    ~Device() {
        if (handle)
            vkDestroyDevice(handle, nullptr);
        if (instance)
            vkDestroyInstance(instance, nullptr);
    }
};

struct Buffer {
    VkDevice device;
    VkBuffer handle{};
    VkDeviceMemory memory{};

    // `visible`: for the host to read; other memory is the device's own.
    Buffer(const Device &owner, VkDeviceSize size, bool visible) : device(owner.handle) {
        VkBufferCreateInfo about{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        about.size = size;
        about.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
                      | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        check(vkCreateBuffer(device, &about, nullptr, &handle), "vkCreateBuffer");
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device, handle, &needs);
        VkPhysicalDeviceMemoryProperties has;
        vkGetPhysicalDeviceMemoryProperties(owner.physical, &has);
        const VkMemoryPropertyFlags wanted =
            visible ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                    : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        VkMemoryAllocateInfo given{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
        given.allocationSize = needs.size;
        while (given.memoryTypeIndex < has.memoryTypeCount
               && !(needs.memoryTypeBits >> given.memoryTypeIndex & 1
                    && (has.memoryTypes[given.memoryTypeIndex].propertyFlags & wanted) == wanted))
            given.memoryTypeIndex++;
        check(vkAllocateMemory(device, &given, nullptr, &memory), "vkAllocateMemory");
        check(vkBindBufferMemory(device, handle, memory, 0), "vkBindBufferMemory");
    }

    ~Buffer() {
        vkDestroyBuffer(device, handle, nullptr);
        vkFreeMemory(device, memory, nullptr);
    }
};

// A shader of the host's on one or two buffers, recorded for one frame after another.
struct Pass {
    VkDevice device;
    VkShaderModule module{};
    VkDescriptorSetLayout set_layout{};
    VkPipelineLayout layout{};
    VkPipeline pipeline{};
    VkDescriptorPool pool{};
    VkDescriptorSet set{};
    VkCommandPool commands_pool{};
    VkCommandBuffer commands{};
    uint32_t groups, size;

    Pass(const Device &owner, const uint32_t *code, size_t bytes, std::initializer_list<VkBuffer> on,
         uint32_t size, uint32_t groups)
        : device(owner.handle), groups(groups), size(size) {
        const VkShaderModuleCreateInfo shader{
            VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, bytes, code};
        check(vkCreateShaderModule(device, &shader, nullptr, &module), "vkCreateShaderModule");
        const VkDescriptorType kind = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        const VkDescriptorSetLayoutBinding bindings[] = {
            {0, kind, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
            {1, kind, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
        VkDescriptorBufferInfo buffers[2]{};
        uint32_t count = 0;
        for (VkBuffer buffer : on)
            buffers[count++] = {buffer, 0, VK_WHOLE_SIZE};
        const VkDescriptorSetLayoutCreateInfo sets{
            VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, count, bindings};
        check(vkCreateDescriptorSetLayout(device, &sets, nullptr, &set_layout), "set layout");
        const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, 8};
        const VkPipelineLayoutCreateInfo laid{
            VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &set_layout, 1, &push};
        check(vkCreatePipelineLayout(device, &laid, nullptr, &layout), "vkCreatePipelineLayout");
        VkComputePipelineCreateInfo about{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        about.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, nullptr, 0,
                       VK_SHADER_STAGE_COMPUTE_BIT, module, "main", nullptr};
        about.layout = layout;
        check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &about, nullptr, &pipeline),
              "vkCreateComputePipelines");
        const VkDescriptorPoolSize room{kind, count};
        const VkDescriptorPoolCreateInfo pools{
            VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, 1, 1, &room};
        check(vkCreateDescriptorPool(device, &pools, nullptr, &pool), "vkCreateDescriptorPool");
        const VkDescriptorSetAllocateInfo one{
            VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, pool, 1, &set_layout};
        check(vkAllocateDescriptorSets(device, &one, &set), "vkAllocateDescriptorSets");
        // From binding 0 on, one after the other
        const VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set, 0, 0,
                                         count, kind, nullptr, buffers, nullptr};
        vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
        const VkCommandPoolCreateInfo recorded{
            VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, owner.family};
        check(vkCreateCommandPool(device, &recorded, nullptr, &commands_pool), "command pool");
        const VkCommandBufferAllocateInfo buffer{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                 nullptr, commands_pool,
                                                 VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
        check(vkAllocateCommandBuffers(device, &buffer, &commands), "vkAllocateCommandBuffers");
    }

    ~Pass() {
        vkDestroyCommandPool(device, commands_pool, nullptr);
        vkDestroyDescriptorPool(device, pool, nullptr);
        vkDestroyPipeline(device, pipeline, nullptr);
        vkDestroyPipelineLayout(device, layout, nullptr);
        vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
        vkDestroyShaderModule(device, module, nullptr);
    }

    // Submits a frame: begins at one value of a timeline (0: at once), and ends with another.
    void submit(VkQueue queue, uint32_t frame, VkSemaphore line, uint64_t begin, uint64_t end) {
        check(vkResetCommandPool(device, commands_pool, 0), "vkResetCommandPool");
        const VkCommandBufferBeginInfo once{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                            VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
        check(vkBeginCommandBuffer(commands, &once), "vkBeginCommandBuffer");
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                                nullptr);
        const uint32_t push[] = {size, frame};
        vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, push);
        vkCmdDispatch(commands, groups, 1, 1);
        const VkMemoryBarrier seen{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                   VK_ACCESS_SHADER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
        vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                             VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &seen, 0, nullptr, 0, nullptr);
        check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
        const VkTimelineSemaphoreSubmitInfo values{
            VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, 1, &begin, 1, &end};
        const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
        const VkSubmitInfo about{
            VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, 1, &line, &stage, 1, &commands, 1, &line};
        check(vkQueueSubmit(queue, 1, &about, VK_NULL_HANDLE), "vkQueueSubmit");
    }
};

static uint32_t elements(const vkrt_tensor_info &info) {
    uint32_t count = 1;
    for (int32_t d = 0; d < info.rank; d++)
        count *= static_cast<uint32_t>(info.sizes[d]);
    return count;
}

static void render(const char *path, uint32_t frames) {
    Device device;
    const char *features[] = {"timelineSemaphore"};
    vkrt_host_device host{};
    host.size = sizeof host;
    host.instance = device.instance;
    host.physical_device = device.physical;
    host.device = device.handle;
    host.queue = device.queue;
    host.queue_family = device.family;
    host.features = features;
    host.feature_count = 1;
    vkrt_options options{};
    options.size = sizeof options;
    options.host_device = &host;
    vkrt_program program;
    check(vkrt_load(path, &options, &program));

    vkrt_tensor_info in{}, out{};
    in.size = out.size = sizeof in;
    check(vkrt_input_get(program, nullptr, 0, &in));
    check(vkrt_output_get(program, nullptr, 0, &out));
    if (in.dtype != VKRT_FLOAT32 || out.dtype != VKRT_FLOAT32)
        throw std::runtime_error("the program does not take and give pictures of float32");
    {
        const uint64_t out_bytes = (out.nbytes + 15) / 16 * 16;
        Buffer small(device, in.nbytes, false), large(device, out_bytes, false);
        Buffer found(device, 3 * sizeof(float), true);
        Pass draw(device, pattern_code, sizeof pattern_code, {small.handle}, elements(in),
                  (elements(in) + 63) / 64);
        Pass measure(device, measure_code, sizeof measure_code, {large.handle, found.handle},
                     elements(out), 1);
        const VkSemaphoreTypeCreateInfo kind{
            VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr, VK_SEMAPHORE_TYPE_TIMELINE};
        const VkSemaphoreCreateInfo about{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &kind};
        VkSemaphore line;
        check(vkCreateSemaphore(device.handle, &about, nullptr, &line), "vkCreateSemaphore");
        void *numbers;
        check(vkMapMemory(device.handle, found.memory, 0, VK_WHOLE_SIZE, 0, &numbers), "vkMapMemory");
        for (uint32_t frame = 0; frame < frames; frame++) {
            const uint64_t at = 3 * uint64_t{frame};
            draw.submit(device.queue, frame, line, at, at + 1);
            vkrt_buffer x{}, y{};
            x.buffer = reinterpret_cast<uint64_t>(small.handle);
            x.nbytes = in.nbytes;
            y.buffer = reinterpret_cast<uint64_t>(large.handle);
            y.nbytes = out_bytes;
            const vkrt_semaphore drawn{reinterpret_cast<uint64_t>(line), at + 1, 1};
            const vkrt_semaphore enlarged{reinterpret_cast<uint64_t>(line), at + 2, 1};
            vkrt_submission run{};
            run.size = sizeof run;
            run.inputs = &x, run.input_count = 1;
            run.outputs = &y, run.output_count = 1;
            run.waits = &drawn, run.wait_count = 1;
            run.signals = &enlarged, run.signal_count = 1;
            uint64_t copied;
            check(vkrt_submit(program, nullptr, nullptr, &run, &copied));
            const uint64_t end = at + 3;
            measure.submit(device.queue, frame, line, at + 2, end);
            const VkSemaphoreWaitInfo wait{
                VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &line, &end};
            check(vkWaitSemaphores(device.handle, &wait, UINT64_MAX), "vkWaitSemaphores");
            float range[3];
            std::memcpy(range, numbers, sizeof range);
            std::printf("frame %u: %.5f to %.5f, mean %.5f, %llu bytes copied\n", frame, range[0],
                        range[1], range[2], static_cast<unsigned long long>(copied));
        }
        check(vkrt_wait(program, nullptr));
        check(vkrt_release_buffers(program));
        vkDestroySemaphore(device.handle, line, nullptr);
    }
    check(vkrt_close(program));
}

int main(int count, char **words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: renderer PROGRAM.pte [FRAMES]\n");
        return 2;
    }
    try {
        render(words[1], count > 2 ? static_cast<uint32_t>(std::atoi(words[2])) : 3);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "renderer: %s\n", error.what());
        return 1;
    }
    return 0;
}
