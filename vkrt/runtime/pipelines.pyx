# cython: language_level=3
"""Pipelines of a program: one per shader variant and specialization, shared by its dispatches."""

from vkrt.runtime.formats import DESCRIPTOR_TYPES, STORAGE_BUFFER

from vkrt.vk.device cimport Device
from vkrt.vk.pipeline cimport Pipeline

from vkrt.vk.pipeline import DescriptorLayout, ShaderModule

LOCAL_SIZE_ID = 100
# The default of a PARAM's specialization constant: "read the push constant".
cdef long UNSET = -0x80000000
PUSH_CONSTANT_BYTES = 128


cdef long as_int32(long bits):
    return bits - (<long>1 << 32) if bits >= <long>1 << 31 else bits


cdef class Pipelines:
    """Shader modules, descriptor set layouts and pipelines, each created once."""

    def __cinit__(self, Device device):
        self.device = device
        self.modules = {}
        self.layouts = {}
        self.pipelines = {}

    cdef Pipeline get(self, shader, params, int local_size, bint specialize):
        """The pipeline of a shader for a dispatch.

        Args:
            params: one int per parameter id.
            local_size: invocations of a workgroup.
            specialize: whether sizes become specialization constants; what selects code always
                does.
        """
        constants = [(LOCAL_SIZE_ID, local_size)]
        for spec in shader.specs:
            if spec.id != LOCAL_SIZE_ID and (specialize or as_int32(spec.default) != UNSET):
                constants.append((spec.id, params[spec.id]))
        key = (shader.name, tuple(constants))
        pipeline = self.pipelines.get(key)
        if pipeline is None:
            pipeline = Pipeline(self._layout(shader), self._module(shader), constants)
            self.pipelines[key] = pipeline
        return pipeline

    def _module(self, shader):
        if shader.name not in self.modules:
            self.modules[shader.name] = ShaderModule(self.device, bytes(shader.spirv))
        return self.modules[shader.name]

    def _layout(self, shader):
        # Binding numbers the compiled code does not use are filled with a type of no consequence.
        types = [STORAGE_BUFFER] * (shader.bindings[-1].binding + 1)
        for binding in shader.bindings:
            types[binding.binding] = DESCRIPTOR_TYPES[binding.type]
        key = tuple(types)
        if key not in self.layouts:
            self.layouts[key] = DescriptorLayout(self.device, types, PUSH_CONSTANT_BYTES)
        return self.layouts[key]

    def drop_modules(self):
        """Shader modules are only needed until their pipelines exist."""
        for module in self.modules.values():
            module.close()
        self.modules = {}

    def close(self):
        """Releases everything."""
        self.drop_modules()
        for pipeline in self.pipelines.values():
            pipeline.close()
        for layout in self.layouts.values():
            layout.close()
        self.pipelines = {}
        self.layouts = {}
