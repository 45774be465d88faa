"""Pipelines: one on a device per shader variant and specialization, whoever uses it.

Programs on one device share what they have in common; the last one that lets go of a pipeline
destroys it. What a program needs beyond that is created by threads, while it is planned.
"""

import atexit
import threading
import weakref

from vkrt.errors import PipelineError, VulkanError
from vkrt.executable.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER, check_descriptors
from vkrt.shader import shader_library
from vkrt.vk.info import usable_cores
from vkrt.vk.pipeline import DescriptorLayout, Pipeline, ShaderModule, pruned
from vkrt.vk.pipeline_batch import PipelineBatch
from vkrt.vk.pipeline_cache import save

from libc.stdlib cimport calloc, free

from vkrt.core.vulkan cimport VK_ERROR_VALIDATION_FAILED_EXT
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Pipeline
from vkrt.vk.pipeline_cache cimport open_cache

PUSH_CONSTANT_BYTES = 128

# Threads that create pipelines beside the one that loads the program
MAX_THREADS = 3

# What is being made, for all programs of the process. A load that is interrupted twice may drop a
# batch without closing it: nothing else may hold one.
batches = weakref.WeakSet()


def in_the_making():
    """How many pipelines the programs of this process wait for."""
    return sum([batch.left for batch in tuple(batches)])


@atexit.register
def stop_all():
    """Ends what is being made: its threads need what the end of a process takes away."""
    for batch in tuple(batches):
        batch.stop()


cdef object _named(error, list kernels):
    """A failure to create pipelines, with the shader of the first in its text.

    Where the driver is neither out of memory nor lost, and nobody has found the call wrong, it is
    the shader that it refuses.

    Args:
        error: the VulkanError.
        kernels: of the pipelines that were not created.
    """
    if not kernels:
        return error
    first = kernels[0]
    names = shader_library().get(first.shader).spec_names
    compiled_in = ", ".join([f"{names[number]}={int(value)}" for number, value in first.constants])
    text = f"shader {first.shader} ({compiled_in}): {error}"
    if type(error) is not VulkanError or error.result == VK_ERROR_VALIDATION_FAILED_EXT:
        error.args = (text,)
        return error
    return PipelineError(f"{text}; another storage= or a newer driver may do", error.result,
                         error.call, shaders=dict.fromkeys([kernel.shader for kernel in kernels]))


cdef class Shared:
    """What the programs on a device have made, as long as one of them holds it.

    Attributes:
        pipelines: by kernel; layouts: by the types of their bindings.
        lock: for looking up and adding at once.
    """

    def __cinit__(self):
        self.pipelines = weakref.WeakValueDictionary()
        self.layouts = weakref.WeakValueDictionary()
        self.lock = threading.Lock()


cdef class Pipelines:
    """The pipelines of one program, by their kernels (`vkrt.executable.records.Kernel`).

    Args:
        device: an open device.
    """

    def __cinit__(self, Device device not None):
        self.device = device
        self.modules = {}
        self.layouts = {}
        self.pipelines = {}
        self.kernels = []
        if device.shared is None:
            made = Shared()
            # Another thread may have made it meanwhile; from here on the GIL is held.
            if device.shared is None:
                device.shared = made
        self.shared = device.shared

    def missing(self, kernels):
        """Those of which no program on the device has the pipeline yet."""
        return [kernel for kernel in dict.fromkeys(kernels) if self._find(kernel) is None]

    def begin(self, kernels):
        """Begins to create the pipelines of kernels, in threads.

        Any error shows in the first `get`.
        """
        cdef PipelineBatch batch
        wanted = self.missing(kernels)
        if not wanted:
            return
        open_cache(self.device)
        batch = PipelineBatch(self.device, len(wanted))
        for kernel in wanted:
            batch.add(self._layout(kernel), self._module(kernel), kernel.constants)
        self.batch, self.kernels = batch, wanted
        batches.add(batch)
        helpers = min(usable_cores() - 1, MAX_THREADS, len(wanted) - 1)
        batch.start(helpers)

    def finish(self):
        """Waits for what was begun, and takes part in it.

        Raises:
            PipelineError: the driver does not compile a shader.
            VulkanError: a pipeline could not be created for another reason.
        """
        batch = self.batch
        if batch is None:
            return
        try:
            batch.work_here()
            try:
                made = batch.take()
            except VulkanError as error:
                raise _named(error, [self.kernels[index] for index in batch.failed]) from None
            for kernel, pipeline in zip(self.kernels, made):
                self._add(kernel, pipeline)
        finally:
            self._drop_batch()
        self.drop_modules()

    def save(self):
        """Lets the driver's cache of compiled pipelines outlive the process."""
        save(self.device)

    cdef KernelTable get_all(self, kernels):
        """The pipelines of kernels, in their order.

        Raises:
            PipelineError, VulkanError: as `finish`.
        """
        self.finish()
        return KernelTable([self._get(kernel) for kernel in kernels])

    def _get(self, kernel):
        pipeline = self._find(kernel)
        if pipeline is None:
            open_cache(self.device)
            try:
                pipeline = Pipeline(self._layout(kernel), self._module(kernel), kernel.constants)
            except VulkanError as error:
                raise _named(error, [kernel]) from None
            pipeline = self._add(kernel, pipeline)
        return pipeline

    def _find(self, kernel):
        """The pipeline of a kernel, if this or another program has it; held from now on."""
        pipeline = self.pipelines.get(kernel)
        if pipeline is None:
            with self.shared.lock:
                pipeline = self.shared.pipelines.get(kernel)
            if pipeline is not None:
                self.pipelines[kernel] = pipeline
        return pipeline

    def _add(self, kernel, pipeline):
        """Holds a new pipeline, or the one that another program has added meanwhile."""
        with self.shared.lock:
            pipeline = self.shared.pipelines.setdefault(kernel, pipeline)
        self.pipelines[kernel] = pipeline
        return pipeline

    def _module(self, kernel):
        """The code of a shader that a kernel reaches."""
        if kernel not in self.modules:
            self.modules[kernel] = ShaderModule(
                self.device, pruned(shader_library().get(kernel.shader).spirv, kernel.constants))
        return self.modules[kernel]

    def _layout(self, kernel):
        shader = shader_library().get(kernel.shader)
        check_descriptors(shader, self.device.info)
        # Binding numbers the compiled code does not use are filled with a type of no consequence.
        types = [STORAGE_BUFFER] * (shader.bindings[-1].binding + 1)
        for binding in shader.bindings:
            types[binding.binding] = DESCRIPTOR_TYPES[binding.type]
        key = tuple(types)
        if key not in self.layouts:
            with self.shared.lock:
                layout = self.shared.layouts.get(key)
                if layout is None:
                    layout = DescriptorLayout(self.device, types, PUSH_CONSTANT_BYTES)
                    self.shared.layouts[key] = layout
            self.layouts[key] = layout
        return self.layouts[key]

    def _drop_batch(self):
        batch = self.batch
        if batch is not None:
            batch.close()
            batches.discard(batch)
        self.batch = None
        self.kernels = []

    def drop_modules(self):
        """Shader modules are only needed until their pipelines exist."""
        for module in self.modules.values():
            module.close()
        self.modules = {}

    def close(self):
        """Lets go of everything; what no other program holds is destroyed."""
        self._drop_batch()
        self.drop_modules()
        self.pipelines = {}
        self.layouts = {}


cdef class KernelTable:
    """Pipelines as the core records them, by their numbers.

    Args:
        pipelines: held as long as this object.
    """

    def __cinit__(self, list pipelines not None):
        cdef Pipeline pipeline
        self.items = <Kernel*>calloc(len(pipelines) + 1, sizeof(Kernel))
        if self.items == NULL:
            raise MemoryError()
        self.pipelines = pipelines
        for number, pipeline in enumerate(pipelines):
            self.items[<size_t>number] = Kernel(pipeline.core.handle, &pipeline.layout.core)

    cdef Kernel* take(self):
        """The array, which becomes the caller's; the pipelines stay this object's."""
        items, self.items = self.items, NULL
        return items

    def __dealloc__(self):
        free(self.items)
