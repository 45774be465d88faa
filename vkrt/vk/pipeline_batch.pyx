"""Pipelines that several threads create side by side.

Threads of Python would wait for the GIL between two pipelines as long as another one computes;
those of the core do without it.
"""

cimport cython

from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport MAX_CONSTANTS, Constant
from vkrt.core.pipeline_batch cimport (
    add_to_batch, close_pipeline_batch, finish_batch, left_of_batch, make_next,
    make_pipeline_batch, start_batch, stop_batch, take_from_batch,
)
from vkrt.vk.check cimport check_status
from vkrt.vk.device cimport Device
from vkrt.vk.interruption cimport poll_interruption
from vkrt.vk.pipeline cimport DescriptorLayout, Pipeline, ShaderModule, write_constants


@cython.no_gc_clear
cdef class PipelineBatch:
    """A list of pipelines to be made.

    `add` them, `start` threads, call `work_here`, and `take` the pipelines.

    Args:
        device: an open device.
        capacity: how many there will be at most.
    """

    def __cinit__(self, Device device not None, int capacity):
        cdef Error error
        self.device = device
        self.parts, self.failed = [], []
        check_status(make_pipeline_batch(&device.core, capacity, &self.core, &error), &error)

    @property
    def size(self):
        return self.core.size

    def add(self, DescriptorLayout layout not None, ShaderModule module not None, constants=()):
        """Adds a pipeline, see `Pipeline`. Comes before `start`."""
        cdef Error error
        cdef Constant[MAX_CONSTANTS] values
        cdef size_t number = write_constants(constants, values)
        if self.core.size == self.core.capacity:
            raise IndexError(f"more than {self.core.capacity} pipelines")
        check_status(add_to_batch(&self.core, &layout.core, &module.core, values, number, &error),
                     &error)
        self.parts.append((layout, module))

    def start(self, int threads):
        """Lets so many threads begin to make the pipelines."""
        start_batch(&self.core, threads)

    def work(self):
        """Makes pipelines until none is left to begin. The GIL is released."""
        with nogil:
            while make_next(&self.core):
                pass

    def work_here(self):
        """The same on the calling thread, which handles signals in between, and waits for what the
        others make."""
        cdef Error error
        cdef int status
        with nogil:
            status = finish_batch(&self.core, poll_interruption, NULL, &error)
        check_status(status, &error)

    @property
    def left(self):
        """How many are not made yet."""
        return left_of_batch(&self.core)

    def stop(self):
        """Lets nobody begin another pipeline, and waits for those that were begun."""
        with nogil:
            stop_batch(&self.core)

    def take(self):
        """The pipelines in the order in which they were added; all of them are made.

        Raises:
            VulkanError: the driver could not make those of `failed`, the first of which says why;
                those it made are destroyed.
        """
        cdef Error error
        cdef Pipeline pipeline
        cdef int index
        result = []
        try:
            self.failed = [index for index in range(self.core.size)
                           if self.core.pipelines[index].result < 0]
            for index, (layout, _) in enumerate(self.parts):
                pipeline = Pipeline(layout, None)
                check_status(take_from_batch(&self.core, index, &pipeline.core, &error), &error)
                result.append(pipeline)
        except BaseException:
            for pipeline in result:
                pipeline.close()
            raise
        finally:
            self.close()
        return result

    def close(self):
        """Stops, and drops what was not taken."""
        with nogil:
            close_pipeline_batch(&self.core)
        self.parts = []

    def __del__(self):
        # Not __dealloc__: the garbage collector may have taken the layouts and modules, which the
        # threads are given, by then.
        self.close()
