from libc.stdlib cimport calloc, free
from libc.string cimport memset

from vkrt.core.atomic cimport atomic_add, atomic_read, atomic_swap
from vkrt.core.device cimport check_usable
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK, fail,
)
from vkrt.core.pipeline cimport compile_recipe, take_pipeline, write_recipe
from vkrt.core.threads cimport join_thread, nap, start_thread
from vkrt.core.vulkan cimport VK_ERROR_UNKNOWN, VK_NULL_HANDLE

cdef enum:
    # Nanoseconds between two looks at threads that are at their last pipelines
    NAP = 200_000


cdef int make_pipeline_batch(Device* device, int capacity, PipelineBatch* batch,
                             Error* error) noexcept nogil:
    memset(batch, 0, sizeof(batch[0]))
    batch.device = device
    batch.pipelines = <BatchedPipeline*>calloc(capacity + 1, sizeof(BatchedPipeline))
    if batch.pipelines == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"%d pipelines: the host is out of memory", capacity)
    batch.capacity = capacity
    return VKRT_OK


cdef void close_pipeline_batch(PipelineBatch* batch) noexcept nogil:
    cdef int i
    stop_batch(batch)
    for i in range(batch.size):
        if batch.pipelines[i].handle != VK_NULL_HANDLE:
            batch.device.vk.vkDestroyPipeline(batch.device.handle, batch.pipelines[i].handle, NULL)
    batch.size = batch.capacity = 0
    free(batch.pipelines)
    batch.pipelines = NULL


cdef int add_to_batch(PipelineBatch* batch, const DescriptorLayout* layout,
                      const ShaderModule* module, const Constant* constants, size_t number,
                      Error* error) noexcept nogil:
    if batch.size == batch.capacity:
        return fail(error, VKRT_ERROR_INPUT, b"more than %d pipelines", batch.capacity)
    if layout.device != batch.device:
        return fail(error, VKRT_ERROR_INPUT, b"the layout is of another device")
    if write_recipe(&batch.pipelines[batch.size].recipe, layout, module, constants, number, error):
        return error.status
    batch.pipelines[batch.size].result = VK_ERROR_UNKNOWN
    batch.size += 1
    return VKRT_OK


cdef bint make_next(PipelineBatch* batch) noexcept nogil:
    cdef BatchedPipeline* pipeline
    cdef int index
    cdef bint has_one
    # In this order, so that whoever has stopped the batch and sees nobody at work is alone.
    atomic_add(&batch.working, 1)
    index = atomic_add(&batch.next, 1) - 1
    has_one = index < batch.size
    if has_one:
        pipeline = &batch.pipelines[index]
        pipeline.result = compile_recipe(batch.device, &pipeline.recipe, &pipeline.handle)
    atomic_add(&batch.working, -1)
    return has_one


cdef void* work(void* batch) noexcept nogil:
    while make_next(<PipelineBatch*>batch):
        pass
    return NULL


cdef void start_batch(PipelineBatch* batch, int threads) noexcept nogil:
    while (batch.thread_count < min(threads, <int>MAX_THREADS) and start_thread(
            &batch.threads[batch.thread_count], work, batch, b"vkrt-pipelines") == 0):
        batch.thread_count += 1


cdef void join(PipelineBatch* batch) noexcept nogil:
    cdef int i
    for i in range(batch.thread_count):
        join_thread(batch.threads[i])
    batch.thread_count = 0


cdef int finish_batch(PipelineBatch* batch, Poll poll, void* data, Error* error) noexcept nogil:
    cdef bint more = True
    # In a forked child nobody ends what a thread of the parent has begun.
    if check_usable(batch.device, error):
        return error.status
    while more or atomic_read(&batch.working) > 0:
        if more:
            more = make_next(batch)
        else:
            nap(NAP)
        if poll != NULL and poll(data):
            return fail(error, VKRT_ERROR_CANCELLED, b"pipelines: the wait for them was ended")
    join(batch)
    return VKRT_OK


cdef void stop_batch(PipelineBatch* batch) noexcept nogil:
    if batch.device == NULL:
        return
    if batch.device.calls.inherited:  # and its threads are the parent's
        batch.thread_count = 0
        return
    atomic_swap(&batch.next, batch.size)
    while atomic_read(&batch.working) > 0:
        nap(NAP)
    join(batch)


cdef int left_of_batch(PipelineBatch* batch) noexcept nogil:
    return max(batch.size - atomic_read(&batch.next), 0) + atomic_read(&batch.working)


cdef int take_from_batch(PipelineBatch* batch, int index, Pipeline* pipeline,
                         Error* error) noexcept nogil:
    return take_pipeline(batch.device, batch.pipelines[index].result,
                         &batch.pipelines[index].handle, pipeline, error)
