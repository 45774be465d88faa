"""The functions behind vkrt.h: structs become values, exceptions become codes.

Each is called by a thread without Python's lock, and holds it to its end but where the runtime
gives it back. One that comes to its end returns 0, which is VKRT_OK. `table` is a capsule with
their addresses.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint64_t

from vkrt.capi.c_values cimport (
    Outputs, array_of, buffers_at, failed, input_of, memory_at, need, put_text, semaphores_at,
    text_at, texts_at, words_of,
)
from vkrt.capi.table cimport (
    VKRT_OK, VKRT_TABLE_NAME, VKRT_TABLE_VERSION, vkrt_failure, vkrt_host_device, vkrt_log,
    vkrt_memory, vkrt_method_info, vkrt_options, vkrt_program, vkrt_progress, vkrt_requirements,
    vkrt_state, vkrt_submission, vkrt_table, vkrt_tensor, vkrt_tensor_info,
)

from vkrt.capi import arrays, loading
from vkrt.capi.codes import CapacityError
from vkrt.capi.handles import (
    close_program, close_state, method_of, new_state, programs, state_of, submit_run, wait_for_run,
)
from vkrt.errors import InputError
from vkrt.memory.source import Source
from vkrt.report import debug

# The library

cdef vkrt_log log_callback = NULL
cdef void* log_data = NULL


def _log(int level, text):
    cdef bytes line = text.encode("utf-8", "replace")
    cdef const char* data = line
    cdef vkrt_log callback = log_callback
    if callback != NULL:
        with nogil:
            callback(level, data, log_data)


cdef int set_log(vkrt_failure* failure, int level, vkrt_log callback, void* data) noexcept with gil:
    global log_callback, log_data
    try:
        log_callback, log_data = callback, data
        debug.send_to(None if callback == NULL else _log, level)
    except BaseException as error:
        return failed(failure, error)


cdef int live_objects(vkrt_failure* failure, size_t* count) noexcept with gil:
    try:
        from vkrt.vk import live_objects

        need(count, "count")
        count[0] = sum(live_objects().values())
    except BaseException as error:
        return failed(failure, error)


cdef int required_features(vkrt_failure* failure, const char* path, const char* weights,
                           vkrt_requirements* found) noexcept with gil:
    try:
        from vkrt.capi import hosting

        needs = hosting.required(text_at(path), text_at(weights))
        put_text(found.api_version, sizeof(found.api_version), needs.api_version)
        found.queue_flags = hosting.QUEUE_FLAGS
        found.features = array_of(hosting.fields(needs.features), &found.feature_count)
        found.extensions = array_of(needs.extensions, &found.extension_count)
        found.optional_features = array_of(hosting.fields(needs.optional_features),
                                           &found.optional_feature_count)
        found.optional_extensions = array_of(needs.optional_extensions,
                                             &found.optional_extension_count)
    except BaseException as error:
        return failed(failure, error)


cdef object adopt(const vkrt_host_device* host):
    """The host's device, adopted."""
    from vkrt.capi import hosting

    names = texts_at(host.features, host.feature_count, "features")
    return hosting.adopt((<size_t>host.instance, <size_t>host.physical_device,
                          <size_t>host.device, <size_t>host.queue), host.queue_family, names,
                         <size_t>host.get_instance_proc_addr, <size_t>host.lock,
                         <size_t>host.unlock, <size_t>host.lock_data)


# Programs

cdef class Progress:
    """The host's function, which is called without Python's lock."""

    cdef vkrt_progress callback
    cdef void* data

    def __call__(self, what):
        cdef bytes text = what.encode("utf-8", "replace")
        cdef const char* name = text
        cdef int result
        with nogil:
            result = self.callback(name, self.data)
        return result


cdef object load(source, const vkrt_options* options, vkrt_program* program):
    cdef Progress progress = None
    cdef size_t number
    words = words_of(options)
    if options.progress != NULL:
        progress = Progress()
        progress.callback, progress.data = options.progress, options.progress_data
    paths = texts_at(options.data_paths, options.data_path_count, "data_paths")
    if options.host_device != NULL and options.device != NULL:
        raise InputError("vkrt_options: `device` and `host_device` exclude each other")
    device = (adopt(options.host_device) if options.host_device != NULL
              else text_at(options.device))
    number = loading.load(source, device, options.memory_budget,
                          options.smallest_memory != 0, words, paths, progress)
    program[0] = <vkrt_program>number


cdef int load_path(vkrt_failure* failure, const char* path, const vkrt_options* options,
                   vkrt_program* program) noexcept with gil:
    try:
        need(path, "path")
        load(text_at(path), options, program)
    except BaseException as error:
        return failed(failure, error)


cdef int load_memory(vkrt_failure* failure, const void* data, size_t nbytes,
                     const vkrt_options* options, vkrt_program* program) noexcept with gil:
    try:
        need(data, "data")
        load(memory_at(data, nbytes, PyBUF_READ) or b"", options, program)
    except BaseException as error:
        return failed(failure, error)


cdef int load_fd(vkrt_failure* failure, int fd, uint64_t offset, uint64_t length,
                 const vkrt_options* options, vkrt_program* program) noexcept with gil:
    try:
        load(Source.open_part(fd, offset, length), options, program)
    except BaseException as error:
        return failed(failure, error)


cdef int close(vkrt_failure* failure, vkrt_program program) noexcept with gil:
    try:
        close_program(<size_t>program)
    except BaseException as error:
        return failed(failure, error)


cdef int method_count(vkrt_failure* failure, vkrt_program program, size_t* count) noexcept with gil:
    try:
        need(count, "count")
        count[0] = len(programs.get(<size_t>program).method_names)
    except BaseException as error:
        return failed(failure, error)


cdef int method_get(vkrt_failure* failure, vkrt_program program, size_t index,
                    vkrt_method_info* info) noexcept with gil:
    try:
        opened = programs.get(<size_t>program)
        names = opened.method_names
        if index >= len(names):
            raise InputError(f"method {index}: the program has {len(names)}")
        metadata = opened.metadata(names[index])
        put_text(info.name, sizeof(info.name), metadata.name)
        info.input_count, info.output_count = len(metadata.inputs), len(metadata.outputs)
    except BaseException as error:
        return failed(failure, error)


cdef int tensor_get(vkrt_failure* failure, vkrt_program program, const char* method,
                    str what, size_t index, vkrt_tensor_info* info) noexcept:
    try:
        metadata = programs.get(<size_t>program).metadata(text_at(method) or "forward")
        tensors = getattr(metadata, f"{what}s")
        if index >= len(tensors):
            raise InputError(f"{what} {index}: the method has {len(tensors)}")
        tensor = tensors[index]
        put_text(info.name, sizeof(info.name), tensor.name)
        info.dtype = arrays.number_of(tensor.dtype)
        info.rank = len(tensor.sizes)
        for dim, size in enumerate(tensor.sizes):
            info.sizes[dim] = size
        info.dynamic = sum([1 << dim for dim in tensor.dynamic_dims])
        info.nbytes = arrays.nbytes_of(tensor.dtype, tensor.sizes)
    except BaseException as error:
        return failed(failure, error)


cdef int input_get(vkrt_failure* failure, vkrt_program program, const char* method, size_t index,
                   vkrt_tensor_info* info) noexcept with gil:
    return tensor_get(failure, program, method, "input", index, info)


cdef int output_get(vkrt_failure* failure, vkrt_program program, const char* method, size_t index,
                    vkrt_tensor_info* info) noexcept with gil:
    return tensor_get(failure, program, method, "output", index, info)


# Running

cdef int run(vkrt_failure* failure, vkrt_program program, const char* method, vkrt_state state,
             const vkrt_tensor* inputs, size_t input_count, vkrt_tensor* outputs,
             size_t output_count) noexcept with gil:
    cdef Outputs out
    cdef size_t index
    try:
        out = Outputs()
        loaded = method_of(<size_t>program, text_at(method))
        infos = loaded.metadata.inputs
        given = [input_of(&inputs[index], infos[index] if index < len(infos) else None, index)
                 for index in range(input_count)]
        out.tensors, out.count, out.infos = outputs, output_count, loaded.metadata.outputs
        loaded.execute(given, out, state_of(loaded, <size_t>state))
    except BaseException as error:
        return failed(failure, error)


# Runs on buffers of the host's device

cdef int submit(vkrt_failure* failure, vkrt_program program, const char* method, vkrt_state state,
                const vkrt_submission* submission, uint64_t* copied) noexcept with gil:
    try:
        copied[0] = submit_run(
            <size_t>program, text_at(method), <size_t>state,
            buffers_at(submission.inputs, submission.input_count, "inputs"),
            buffers_at(submission.outputs, submission.output_count, "outputs"),
            semaphores_at(submission.waits, submission.wait_count, "waits"),
            semaphores_at(submission.signals, submission.signal_count, "signals"))
    except BaseException as error:
        return failed(failure, error)


cdef int wait(vkrt_failure* failure, vkrt_program program, const char* method) noexcept with gil:
    try:
        wait_for_run(<size_t>program, text_at(method))
    except BaseException as error:
        return failed(failure, error)


cdef int release_buffers(vkrt_failure* failure, vkrt_program program) noexcept with gil:
    try:
        programs.get(<size_t>program).release_buffers()
    except BaseException as error:
        return failed(failure, error)


cdef int cancel(vkrt_failure* failure, vkrt_program program, const char* method) noexcept with gil:
    try:
        programs.get(<size_t>program).cancel(text_at(method) or "forward")
    except BaseException as error:
        return failed(failure, error)


# States

cdef int state_new(vkrt_failure* failure, vkrt_program program, const char* method,
                   vkrt_state* state) noexcept with gil:
    cdef size_t number
    try:
        number = new_state(<size_t>program, text_at(method))
        state[0] = <vkrt_state>number
    except BaseException as error:
        return failed(failure, error)


cdef int state_close(vkrt_failure* failure, vkrt_state state) noexcept with gil:
    try:
        close_state(<size_t>state)
    except BaseException as error:
        return failed(failure, error)


cdef int state_reset(vkrt_failure* failure, vkrt_program program, const char* method,
                     vkrt_state state) noexcept with gil:
    try:
        loaded = method_of(<size_t>program, text_at(method))
        state_of(loaded, <size_t>state).reset()
    except BaseException as error:
        return failed(failure, error)


cdef int state_save(vkrt_failure* failure, vkrt_program program, const char* method,
                    vkrt_state state, void* buffer, size_t nbytes, size_t* needed,
                    ) noexcept with gil:
    try:
        from vkrt.capi import saving

        loaded = method_of(<size_t>program, text_at(method))
        values = state_of(loaded, <size_t>state)
        needed[0] = saving.saved_bytes(loaded)
        if buffer == NULL:
            return VKRT_OK
        if nbytes < needed[0]:
            raise CapacityError(f"the state has {needed[0]} bytes, its memory {nbytes}")
        saving.save(loaded, values, memory_at(buffer, needed[0], PyBUF_WRITE))
    except BaseException as error:
        return failed(failure, error)


cdef int state_load(vkrt_failure* failure, vkrt_program program, const char* method,
                    vkrt_state state, const void* data, size_t nbytes) noexcept with gil:
    try:
        from vkrt.capi import saving

        loaded = method_of(<size_t>program, text_at(method))
        saving.load(loaded, state_of(loaded, <size_t>state),
                    memory_at(data, nbytes, PyBUF_READ) or b"")
    except BaseException as error:
        return failed(failure, error)


# Memory

cdef int memory_get(vkrt_failure* failure, vkrt_program program, vkrt_memory* memory,
                    ) noexcept with gil:
    try:
        report = programs.get(<size_t>program).memory
        memory.planned_peak, memory.measured_peak = report.planned_peak, report.measured_peak
        memory.weights, memory.mapped = report.weights, report.mapped
        memory.streamed, memory.pool = report.streamed, report.pool
        memory.state, memory.staging = report.state, report.staging
        memory.activations, memory.host = report.activations, report.host
    except BaseException as error:
        return failed(failure, error)


cdef vkrt_table functions
functions.version = VKRT_TABLE_VERSION
functions.set_log = set_log
functions.live_objects = live_objects
functions.required_features = required_features
functions.load = load_path
functions.load_memory = load_memory
functions.load_fd = load_fd
functions.close = close
functions.method_count = method_count
functions.method_get = method_get
functions.input_get = input_get
functions.output_get = output_get
functions.run = run
functions.submit = submit
functions.wait = wait
functions.release_buffers = release_buffers
functions.cancel = cancel
functions.state_new = state_new
functions.state_close = state_close
functions.state_reset = state_reset
functions.state_save = state_save
functions.state_load = state_load
functions.memory_get = memory_get

table = PyCapsule_New(<void*>&functions, VKRT_TABLE_NAME, NULL)
