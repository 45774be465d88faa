"""Pipelines that several threads create side by side."""

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport Constant, DescriptorLayout, Pipeline, Recipe, ShaderModule
from vkrt.core.poll cimport Poll
from vkrt.core.threads cimport pthread_t
from vkrt.core.vulkan cimport VkPipeline

cdef enum:
    MAX_THREADS = 16

cdef struct BatchedPipeline:
    Recipe recipe
    VkPipeline handle
    int result  # a VkResult

cdef struct PipelineBatch:
    Device* device
    BatchedPipeline* pipelines
    # How many there are, how many there is capacity for, and which one is the next to be begun
    int size
    int capacity
    int next
    # Threads that are at a pipeline
    int working
    # Those of its own
    pthread_t[MAX_THREADS] threads
    int thread_count

cdef extern nogil:
    int make_pipeline_batch "vkrt_make_pipeline_batch"(Device* device, int capacity,
                                                       PipelineBatch* batch, Error* error)
    # Stops it, and drops what was not taken.
    void close_pipeline_batch "vkrt_close_pipeline_batch"(PipelineBatch* batch)
    # Comes before threads are started. Layout and module have to outlive the work.
    int add_to_batch "vkrt_add_to_batch"(PipelineBatch* batch, const DescriptorLayout* layout,
                                         const ShaderModule* module, const Constant* constants,
                                         size_t number, Error* error)
    # Lets so many threads begin, or as many as the system gives.
    void start_batch "vkrt_start_batch"(PipelineBatch* batch, int threads)
    # Makes the next pipeline on the calling thread; False where there is none.
    bint make_next "vkrt_make_next"(PipelineBatch* batch)
    # Takes part until all are made; VKRT_ERROR_CANCELLED where `poll` (which may be NULL) ends that
    # before.
    int finish_batch "vkrt_finish_batch"(PipelineBatch* batch, Poll poll, void* data, Error* error)
    # Lets nobody begin another pipeline, and waits for those that were begun.
    void stop_batch "vkrt_stop_batch"(PipelineBatch* batch)
    # How many are not made yet
    int left_of_batch "vkrt_left_of_batch"(PipelineBatch* batch)
    # Pipeline `index` in the order in which they were added, once it is finished; fails where the
    # driver could not make it.
    int take_from_batch "vkrt_take_from_batch"(PipelineBatch* batch, int index, Pipeline* pipeline,
                                               Error* error)
