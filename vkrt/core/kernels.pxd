"""The pipelines of a program: one for each shader and what is compiled into it."""

from libc.stdint cimport int64_t

from vkrt.core.device cimport Device
from vkrt.core.error cimport Error
from vkrt.core.pipeline cimport DescriptorLayout, Pipeline
from vkrt.core.records cimport KernelRow, Records, Rows
from vkrt.core.vulkan cimport VkPipeline

# What a dispatch needs of its kernel
cdef struct Kernel:
    VkPipeline pipeline
    const DescriptorLayout* layout

cdef struct MadeKernel:
    const KernelRow* row
    DescriptorLayout* layout
    Pipeline pipeline

# Pointers to what is in it stay as they are until it is closed.
cdef struct Kernels:
    Device* device
    const Records* records
    # The file's bytes, which have the modules
    const char* data
    MadeKernel** items
    int64_t count
    DescriptorLayout** layouts
    int64_t layout_count

cdef extern nogil:
    # No pipeline is made yet. What failed needs no `close_kernels`.
    int open_kernels "vkrt_open_kernels"(Device* device, const Records* records, const char* data,
                                         Kernels* kernels, Error* error)
    # The device must be done with the pipelines. May be called again.
    void close_kernels "vkrt_close_kernels"(Kernels* kernels)
    # The kernels of these rows, in their order; those that are not there are made, by several
    # threads. The caller frees `found`, also where it failed.
    int get_kernels "vkrt_get_kernels"(Kernels* kernels, const Rows* rows, Kernel** found,
                                       Error* error)
