# cython: language_level=3
"""Pipelines: one on a device per shader variant and specialization, whoever uses it.

Programs on one device share what they have in common; the last one that lets go of a pipeline
destroys it. What a program needs beyond that is created by threads, while it is planned.
"""

import threading
import weakref
from collections import Counter

from vkrt.device.policy import policy_of
from vkrt.errors import PipelineError, VulkanError
from vkrt.work.records import LOCAL_SIZE, Dispatch
from vkrt.runtime.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER, check_descriptors
from vkrt.runtime.pruning import pruned
from vkrt.shader import catalog
from vkrt.vk.info import usable_cores
from vkrt.vk.pipeline import DescriptorLayout, Pipeline, ShaderModule
from vkrt.vk.pipeline_batch import PipelineBatch
from vkrt.vk.pipeline_cache import save

from vkrt.vk.api cimport VK_ERROR_VALIDATION_FAILED_EXT
from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Pipeline
from vkrt.vk.pipeline_cache cimport open_cache

PUSH_CONSTANT_BYTES = 128

# A shader that a work list would specialize for more dispatches than these has its sizes pushed
# instead, where all are to be compiled in: compiling it so often takes longer than many runs gain.
MAX_SPECIALIZED = 96

# Threads that create pipelines beside the one that loads the program
MAX_THREADS = 3

# What is being made, for all programs of the process
cdef set batches = set()


def in_the_making():
    """How many pipelines the programs of this process wait for."""
    return sum([batch.left for batch in tuple(batches)])


cdef str _family(str shader):
    """The family of a shader: without its variant, and without what its registers hold, as in
    conv2d_8x8 and conv2d_depthwise_2."""
    cdef str file = shader.partition(".")[0]
    family, _, tile = file.rpartition("_")
    return family if len(tile) and tile.replace("x", "", 1).isdecimal() else file


cdef object _named(error, list keys):
    """A failure to create pipelines, with the shader of the first in its text.

    Where the driver is neither out of memory nor lost, and nobody has found the call wrong, it is
    the shader that it refuses.

    Args:
        error: the VulkanError.
        keys: of the pipelines that were not created, see `Pipelines._key`.
    """
    if not keys:
        return error
    shader, constants = keys[0]
    names = catalog().get(shader).spec_names
    compiled_in = ", ".join([f"{names[number]}={int(value)}" for number, value in constants])
    text = f"shader {shader} ({compiled_in}): {error}"
    if type(error) is not VulkanError or error.result == VK_ERROR_VALIDATION_FAILED_EXT:
        error.args = (text,)
        return error
    return PipelineError(f"{text}; another storage= or a newer driver may do", error.result,
                         error.call, shaders=dict.fromkeys([name for name, _ in keys]))


cdef class Shared:
    """What the programs on a device have made, as long as one of them holds it.

    Attributes:
        pipelines, layouts: by what makes them equal.
        lock: for looking up and adding at once.
    """

    def __cinit__(self):
        self.pipelines = weakref.WeakValueDictionary()
        self.layouts = weakref.WeakValueDictionary()
        self.lock = threading.Lock()


cdef class Pipelines:
    """The pipelines of one program.

    Args:
        device: an open device.
        specialize: which sizes become specialization constants of the dispatches' pipelines, the
            others being pushed: "few" (those that the driver's row names), "all" or "none".
    """

    def __cinit__(self, Device device not None, str specialize="few"):
        self.device = device
        self.specialize = specialize
        self.few = policy_of(device.info).specialize if specialize == "few" else {}
        self.constants = {}
        self.modules = {}
        self.layouts = {}
        self.pipelines = {}
        self.pushed = set()
        self.keys = []
        self.threads = []
        if device.shared is None:
            made = Shared()
            # Another thread may have made it meanwhile; from here on the GIL is held.
            if device.shared is None:
                device.shared = made
        self.shared = device.shared

    def missing(self, work):
        """What a work list needs that no program on the device has yet: key -> shader."""
        wanted = {}
        shaders = catalog()
        steps = [step for step in work.steps if isinstance(step, Dispatch)]
        if self.specialize == "all":
            kinds = {(step.shader, step.params, step.local_size) for step in steps}
            self.pushed = {name for name, count in Counter(kind[0] for kind in kinds).items()
                           if count > MAX_SPECIALIZED}
        for step in steps:
            shader = shaders.get(step.shader)
            key = self._key(shader, step.params, step.constants, False)
            if key not in wanted and self._find(key) is None:
                wanted[key] = shader
        return wanted

    def begin(self, work):
        """Begins to create the pipelines of a work list, in threads.

        Any error shows in the first `get`.
        """
        cdef PipelineBatch batch
        wanted = self.missing(work)
        if not wanted:
            return
        open_cache(self.device)
        batch = PipelineBatch(self.device, len(wanted))
        for key, shader in wanted.items():
            batch.add(self._layout(shader), self._module(shader, key), key[1])
        batches.add(batch)
        self.batch, self.keys = batch, list(wanted)
        helpers = min(usable_cores() - 1, MAX_THREADS, len(wanted) - 1)
        for _ in range(helpers):
            thread = threading.Thread(target=batch.work, name="vkrt-pipelines")
            thread.start()
            self.threads.append(thread)

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
            self._join()
            try:
                made = batch.take()
            except VulkanError as error:
                raise _named(error, [self.keys[index] for index in batch.failed]) from None
            for key, pipeline in zip(self.keys, made):
                self._add(key, pipeline)
        finally:
            self._drop_batch()
        self.drop_modules()

    def save(self):
        """Lets the driver's cache of compiled pipelines outlive the process."""
        save(self.device)

    cdef Pipeline get(self, shader, params, tuple constants, bint pushed):
        """The pipeline of a shader for a dispatch.

        Args:
            params: one int per parameter id.
            constants: what the dispatch is, see `Dispatch.constants`.
            pushed: whether all sizes are pushed, whatever `specialize` says.

        Raises:
            PipelineError, VulkanError: as `finish`.
        """
        self.finish()
        key = self._key(shader, params, constants, pushed)
        pipeline = self._find(key)
        if pipeline is None:
            open_cache(self.device)
            try:
                pipeline = Pipeline(self._layout(shader), self._module(shader, key), key[1])
            except VulkanError as error:
                raise _named(error, [key]) from None
            pipeline = self._add(key, pipeline)
        return pipeline

    def _key(self, shader, params, constants, pushed):
        """What pipelines are told apart by: the shader and (id, value) of what is compiled in."""
        return shader.name, tuple([
            (number, constants[number - LOCAL_SIZE] if number >= LOCAL_SIZE else params[number])
            for number in self._constants(shader, pushed)])

    def _constants(self, shader, bint pushed):
        """Ids of what is compiled in: always what selects code, and what a dispatch is."""
        cdef tuple known = self.constants.get((shader.name, pushed))
        if known is None:
            names = () if pushed else self.few.get(_family(shader.name), ())
            everything = self.specialize == "all" and not pushed and shader.name not in self.pushed
            known = tuple(spec.id for spec in shader.specs if (
                everything or not spec.may_be_pushed or spec.name in names))
            self.constants[shader.name, pushed] = known
        return known

    def _find(self, key):
        """The pipeline of a key, if this or another program has it; held from now on."""
        pipeline = self.pipelines.get(key)
        if pipeline is None:
            with self.shared.lock:
                pipeline = self.shared.pipelines.get(key)
            if pipeline is not None:
                self.pipelines[key] = pipeline
        return pipeline

    def _add(self, key, pipeline):
        """Holds a new pipeline, or the one that another program has added meanwhile."""
        with self.shared.lock:
            pipeline = self.shared.pipelines.setdefault(key, pipeline)
        self.pipelines[key] = pipeline
        return pipeline

    def _module(self, shader, key):
        """The code of a shader that the pipeline of a key reaches."""
        if key not in self.modules:
            self.modules[key] = ShaderModule(self.device, pruned(shader.spirv, key[1]))
        return self.modules[key]

    def _layout(self, shader):
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

    def _join(self):
        for thread in self.threads:
            thread.join()
        self.threads = []

    def _drop_batch(self):
        batch = self.batch
        if batch is not None:
            # What is left of the threads after that needs nothing of the batch.
            batch.stop()
            batch.close()
            batches.discard(batch)
        self.batch = None
        self.keys, self.threads = [], []

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
