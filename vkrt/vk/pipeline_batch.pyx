# cython: language_level=3
"""Pipelines that several threads create side by side.

Threads of Python would wait for the GIL between two pipelines as long as another one computes; here
they take the next pipeline from an array and need it only once all are done.
"""

cimport cython
from libc.stdlib cimport calloc, free

from vkrt.vk.interruption cimport check_interruption
from vkrt.vk.api cimport VK_ERROR_UNKNOWN, VkPipeline, VkResult
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport DescriptorLayout, Pipeline, Recipe, ShaderModule, write_recipe


cdef extern from * nogil:
    """
    #include <time.h>
    #define VKRT_ADD(counter, more) __atomic_fetch_add(counter, more, __ATOMIC_SEQ_CST)
    #define VKRT_LOAD(counter) __atomic_load_n(counter, __ATOMIC_SEQ_CST)
    #define VKRT_SET(counter, value) __atomic_store_n(counter, value, __ATOMIC_SEQ_CST)
    static inline void vkrt_nap(void) {
        struct timespec time = {0, 1000000};
        nanosleep(&time, NULL);
    }
    """
    int fetch_add "VKRT_ADD"(int* counter, int more)
    int load "VKRT_LOAD"(int* counter)
    void store "VKRT_SET"(int* counter, int value)
    void nap "vkrt_nap"()


@cython.no_gc_clear
cdef class PipelineBatch:
    """A list of pipelines to be made.

    `add` them, call `work` from as many threads as wanted, and when all of these calls have
    returned `take` the pipelines.

    Args:
        device: an open device.
        capacity: how many there will be at most.
    """

    def __cinit__(self, Device device not None, int capacity):
        self.device = device
        self.parts, self.failed = [], []
        self.recipes = <Recipe*>calloc(capacity + 1, sizeof(Recipe))
        self.handles = <VkPipeline*>calloc(capacity + 1, sizeof(VkPipeline))
        self.results = <VkResult*>calloc(capacity + 1, sizeof(VkResult))
        if self.recipes == NULL or self.handles == NULL or self.results == NULL:
            raise MemoryError
        self.capacity = capacity

    def add(self, DescriptorLayout layout not None, ShaderModule module not None, constants=()):
        """Adds a pipeline, see `Pipeline`. Comes before `work`."""
        if self.size == self.capacity:
            raise IndexError(f"more than {self.capacity} pipelines")
        if layout.device is not self.device:
            raise ValueError("the layout is of another device")
        write_recipe(&self.recipes[self.size], layout, module, constants)
        self.results[self.size] = VK_ERROR_UNKNOWN
        self.parts.append((layout, module))
        self.size += 1

    def work(self):
        """Makes pipelines until none is left to begin. The GIL is released."""
        with nogil:
            while self.advance():
                pass

    def work_here(self):
        """The same on the calling thread, which handles signals in between."""
        cdef bint more = True
        while more:
            with nogil:
                more = self.advance()
            check_interruption()

    cdef bint advance(self) noexcept nogil:
        """Makes the next pipeline; False where there is none."""
        cdef int index
        # In this order, so that whoever has stopped the batch and sees nobody at work is alone.
        fetch_add(&self.working, 1)
        index = fetch_add(&self.next, 1)
        if index < self.size:
            self.results[index] = self.device.vk.vkCreateComputePipelines(
                self.device.handle, self.device.pipeline_cache, 1, &self.recipes[index].info, NULL,
                &self.handles[index])
        fetch_add(&self.working, -1)
        return index < self.size

    @property
    def left(self):
        """How many are not made yet."""
        return max(self.size - load(&self.next), 0) + load(&self.working)

    def stop(self):
        """Lets no call of `work` begin another pipeline, and waits for those that were begun."""
        with nogil:
            store(&self.next, self.size)
            while load(&self.working):
                nap()

    def take(self):
        """The pipelines in the order in which they were added.

        Raises:
            VulkanError: the driver could not make those of `failed`, the first of which says why;
                those it made are destroyed.
        """
        cdef Pipeline pipeline
        cdef VkPipeline handle
        cdef int index
        result = []
        try:
            self.failed = [index for index in range(self.size) if <int>self.results[index] < 0]
            for index, (layout, _) in enumerate(self.parts):
                pipeline = Pipeline(layout, None)
                handle, self.handles[index] = self.handles[index], NULL
                pipeline.take(self.results[index], handle)
                result.append(pipeline)
        except BaseException:
            for pipeline in result:
                pipeline.close()
            raise
        finally:
            self.destroy()
        return result

    def close(self):
        """Drops what was not taken; no call of `work` may be going on."""
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef int index
        for index in range(self.size if self.handles != NULL else 0):
            if self.handles[index] != NULL:
                self.device.vk.vkDestroyPipeline(self.device.handle, self.handles[index], NULL)
        free(self.recipes)
        free(self.handles)
        free(self.results)
        self.recipes = NULL
        self.handles = NULL
        self.results = NULL
        self.size = self.capacity = 0
        self.parts = []

    def __dealloc__(self):
        self.destroy()
