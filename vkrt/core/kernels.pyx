from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_ERROR_MEMORY, VKRT_OK, fail
from vkrt.core.check cimport find_module
from vkrt.core.flat cimport equal_texts
from vkrt.core.grown cimport grown
from vkrt.core.pipeline cimport (
    Constant, MAX_BINDINGS, MAX_CONSTANTS, ShaderModule, close_descriptor_layout, close_pipeline,
    close_shader_module, make_descriptor_layout, make_shader_module,
)
from vkrt.core.pipeline_batch cimport (
    PipelineBatch, add_to_batch, close_pipeline_batch, finish_batch, make_pipeline_batch,
    start_batch, take_from_batch,
)
from vkrt.core.pruning cimport prune_module
from vkrt.core.records cimport ModuleRow
from vkrt.core.system cimport usable_cores
from vkrt.core.vulkan cimport VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VkDescriptorType

cdef enum:
    PUSH_CONSTANT_BYTES = 128
    # Modules that there are at once, and threads that make pipelines of them beside the one that
    # loads the program
    SIDE_BY_SIDE = 32
    MAX_HELPERS = 3


cdef int open_kernels(Device* device, const Records* records, const char* data, Kernels* kernels,
                      Error* error) noexcept nogil:
    memset(kernels, 0, sizeof(kernels[0]))
    kernels.device, kernels.records, kernels.data = device, records, data
    return VKRT_OK


cdef void close_kernels(Kernels* kernels) noexcept nogil:
    cdef int64_t i
    for i in range(kernels.count):
        close_pipeline(&kernels.items[i].pipeline)
        free(kernels.items[i])
    for i in range(kernels.layout_count):
        close_descriptor_layout(kernels.layouts[i])
        free(kernels.layouts[i])
    free(kernels.items)
    free(kernels.layouts)
    memset(kernels, 0, sizeof(kernels[0]))


cdef bint is_same(const Records* records, const KernelRow* one,
                  const KernelRow* other) noexcept nogil:
    if (one.constants.count != other.constants.count
            or not equal_texts(records, &one.shader, &other.shader)):
        return False
    return memcmp(records.integers_2 + one.constants.first,
                  records.integers_2 + other.constants.first,
                  <size_t>one.constants.count * sizeof(records.integers_2[0])) == 0


cdef int get_layout(Kernels* kernels, const ModuleRow* module, DescriptorLayout** found,
                    Error* error) noexcept nogil:
    """The layout of a module's bindings; those with the same bindings share one."""
    cdef const Records* records = kernels.records
    cdef VkDescriptorType[MAX_BINDINGS] types
    cdef DescriptorLayout* layout
    cdef DescriptorLayout** room
    cdef uint32_t size = 0
    cdef int64_t i
    # Binding numbers that the compiled code does not use are filled with a type of no consequence.
    for i in range(MAX_BINDINGS):
        types[i] = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
    for i in range(module.bindings.first, module.bindings.first + module.bindings.count):
        if records.module_binding[i].number >= MAX_BINDINGS:
            return fail(error, VKRT_ERROR_FORMAT, b"binding %lld of a shader: expected one below "
                        b"%d", <long long>records.module_binding[i].number, MAX_BINDINGS)
        types[records.module_binding[i].number] = <int>records.module_binding[i].type
        size = max(size, <uint32_t>records.module_binding[i].number + 1)
    for i in range(kernels.layout_count):
        layout = kernels.layouts[i]
        if (layout.size == size
                and memcmp(layout.types, types, size * sizeof(VkDescriptorType)) == 0):
            found[0] = layout
            return VKRT_OK
    room = <DescriptorLayout**>grown(kernels.layouts, <size_t>kernels.layout_count,
                                     sizeof(void*))
    layout = <DescriptorLayout*>calloc(1, sizeof(DescriptorLayout))
    if room != NULL:
        kernels.layouts = room
    if room == NULL or layout == NULL:
        free(layout)
        return fail(error, VKRT_ERROR_MEMORY, b"the layout of a kernel: the host is out of memory")
    if make_descriptor_layout(kernels.device, types, size, PUSH_CONSTANT_BYTES, layout, error):
        free(layout)
        return error.status
    kernels.layouts[kernels.layout_count] = layout
    kernels.layout_count += 1
    found[0] = layout
    return VKRT_OK


cdef int add_recipe(Kernels* kernels, const KernelRow* row, MadeKernel* kernel,
                    ShaderModule* module, PipelineBatch* batch, Error* error) noexcept nogil:
    """What the pipeline of a kernel is made of; the module has to outlive the batch's work."""
    cdef const Records* records = kernels.records
    cdef const ModuleRow* source = find_module(records, &row.shader)
    cdef Constant[MAX_CONSTANTS] constants
    cdef size_t count = <size_t>row.constants.count
    cdef const uint32_t* words
    cdef uint32_t* pruned
    cdef size_t nbytes, pruned_bytes
    cdef int64_t i
    cdef int status
    kernel.row = row
    if source == NULL or row.constants.count > MAX_CONSTANTS:
        return fail(error, VKRT_ERROR_FORMAT, b"shader %.*s: the file has no module of it, or it "
                    b"has %lld constants", <int>row.shader.count, records.texts + row.shader.first,
                    <long long>row.constants.count)
    for i in range(row.constants.count):
        constants[i].id = <uint32_t>records.integers_2[row.constants.first + i].items[0]
        constants[i].value = <uint32_t>records.integers_2[row.constants.first + i].items[1]
    words, nbytes = <const uint32_t*>(kernels.data + source.offset), <size_t>source.nbytes
    if (get_layout(kernels, source, &kernel.layout, error)
            or prune_module(words, nbytes, constants, count, &pruned, &pruned_bytes, error)):
        return error.status
    if pruned != NULL:
        words, nbytes = pruned, pruned_bytes
    status = make_shader_module(kernels.device, words, nbytes, module, error)
    free(pruned)
    return status or add_to_batch(batch, kernel.layout, module, constants, count, error)


cdef MadeKernel* find_kernel(const Kernels* kernels, const KernelRow* row) noexcept nogil:
    cdef int64_t i
    for i in range(kernels.count):
        if is_same(kernels.records, kernels.items[i].row, row):
            return kernels.items[i]
    return NULL


cdef int add_kernel(Kernels* kernels, const KernelRow* row, MadeKernel** made,
                    Error* error) noexcept nogil:
    """A kernel without a pipeline."""
    cdef MadeKernel** room = <MadeKernel**>grown(kernels.items, <size_t>kernels.count,
                                                 sizeof(void*))
    made[0] = <MadeKernel*>calloc(1, sizeof(MadeKernel))
    if room != NULL:
        kernels.items = room
    if room == NULL or made[0] == NULL:
        free(made[0])
        return fail(error, VKRT_ERROR_MEMORY, b"a pipeline: the host is out of memory")
    made[0].row = row
    kernels.items[kernels.count] = made[0]
    kernels.count += 1
    return VKRT_OK


cdef void drop_kernels(Kernels* kernels, int64_t count) noexcept nogil:
    """Leaves the first ones alone."""
    while kernels.count > count:
        kernels.count -= 1
        close_pipeline(&kernels.items[kernels.count].pipeline)
        free(kernels.items[kernels.count])


cdef int add_missing(Kernels* kernels, const Rows* rows, int64_t* next, ShaderModule* modules,
                     PipelineBatch* batch, Error* error) noexcept nogil:
    """Adds those from row `next` on that are not there, as many as go side by side."""
    cdef const KernelRow* row
    cdef MadeKernel* made = NULL
    while next[0] < rows.count and batch.size < SIDE_BY_SIDE:
        row = kernels.records.kernel + rows.first + next[0]
        next[0] += 1
        if find_kernel(kernels, row) == NULL and (
                add_kernel(kernels, row, &made, error)
                or add_recipe(kernels, row, made, modules + batch.size, batch, error)):
            return error.status
    return VKRT_OK


cdef int make_batch(Kernels* kernels, int64_t first, PipelineBatch* batch,
                    Error* error) noexcept nogil:
    """The pipelines of the kernels from `first` on"""
    cdef int i
    start_batch(batch, min(usable_cores() - 1, MAX_HELPERS, batch.size - 1))
    if finish_batch(batch, NULL, NULL, error):
        return error.status
    for i in range(batch.size):
        if take_from_batch(batch, i, &kernels.items[first + i].pipeline, error):
            return error.status
    return VKRT_OK


cdef int make_some(Kernels* kernels, const Rows* rows, int64_t* next, Error* error) noexcept nogil:
    cdef ShaderModule[SIDE_BY_SIDE] modules
    cdef PipelineBatch batch
    cdef int64_t first = kernels.count
    cdef int i, status
    memset(modules, 0, sizeof(modules))
    if make_pipeline_batch(kernels.device, SIDE_BY_SIDE, &batch, error):
        return error.status
    status = (add_missing(kernels, rows, next, modules, &batch, error)
              or make_batch(kernels, first, &batch, error))
    if status != VKRT_OK:
        drop_kernels(kernels, first)
    close_pipeline_batch(&batch)
    for i in range(SIDE_BY_SIDE):
        close_shader_module(&modules[i])
    return status


cdef int get_kernels(Kernels* kernels, const Rows* rows, Kernel** found,
                     Error* error) noexcept nogil:
    cdef const MadeKernel* kernel
    cdef int64_t next = 0, i
    found[0] = <Kernel*>calloc(<size_t>rows.count + 1, sizeof(Kernel))
    if found[0] == NULL:
        return fail(error, VKRT_ERROR_MEMORY, b"kernels: the host is out of memory")
    while next < rows.count and find_kernel(
            kernels, kernels.records.kernel + rows.first + next) != NULL:
        next += 1
    while next < rows.count:
        if make_some(kernels, rows, &next, error):
            return error.status
    for i in range(rows.count):
        kernel = find_kernel(kernels, kernels.records.kernel + rows.first + i)
        found[0][i] = Kernel(kernel.pipeline.handle, kernel.layout)
    return VKRT_OK
