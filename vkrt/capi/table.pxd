"""The types of vkrt.h and table.h."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "table.h" nogil:
    enum:
        VKRT_OK
        VKRT_ERROR_INTERNAL
        VKRT_MAX_NAME
        VKRT_MAX_RANK
        VKRT_TABLE_VERSION
    const char* VKRT_TABLE_NAME

    struct vkrt_program_s:
        pass
    struct vkrt_state_s:
        pass
    ctypedef vkrt_program_s* vkrt_program
    ctypedef vkrt_state_s* vkrt_state
    ctypedef void (*vkrt_log)(int level, const char* line, void* data) noexcept nogil
    ctypedef int (*vkrt_progress)(const char* what, void* data) noexcept nogil

    struct vkrt_failure:
        int code
        char text[4096]
    struct vkrt_device_info:
        char name[256]
        char type[16]
        char driver[256]
        char api_version[16]
        uint32_t vendor_id, device_id
        uint64_t local_memory
    struct vkrt_host_device:
        void* instance
        void* physical_device
        void* device
        void* queue
        uint32_t queue_family
        const char** features
        size_t feature_count
        void (*get_instance_proc_addr)() noexcept nogil
        void (*lock)(void*) noexcept nogil
        void (*unlock)(void*) noexcept nogil
        void* lock_data
    struct vkrt_requirements:
        char api_version[16]
        uint32_t queue_flags
        const char** features
        size_t feature_count
        const char** extensions
        size_t extension_count
        const char** optional_features
        size_t optional_feature_count
        const char** optional_extensions
        size_t optional_extension_count
    struct vkrt_options:
        const char* device
        uint64_t memory_budget
        int smallest_memory
        const char* storage
        const char* weights
        const char* prefetch
        const char* packed
        const char* winograd
        const char* fusions
        const char* specialize
        const char* pipeline_cache
        const char** data_paths
        size_t data_path_count
        vkrt_progress progress
        void* progress_data
        const vkrt_host_device* host_device
        const char* plan_cache
        const char* order
        uint64_t chunk
        const int* stream_lookahead
        const int* keep_cached
        const char* prefer
        const char* cache
    struct vkrt_method_info:
        char name[VKRT_MAX_NAME]
        size_t input_count, output_count
    struct vkrt_tensor_info:
        char name[VKRT_MAX_NAME]
        int32_t dtype, rank
        int64_t sizes[VKRT_MAX_RANK]
        uint32_t dynamic
        uint64_t nbytes
    struct vkrt_tensor:
        void* data
        size_t nbytes
        int32_t dtype, rank
        int64_t sizes[VKRT_MAX_RANK]
    struct vkrt_buffer:
        uint64_t buffer, offset, nbytes
        int32_t has_sizes, rank
        int64_t sizes[VKRT_MAX_RANK]
    struct vkrt_semaphore:
        uint64_t semaphore, value
        int32_t is_timeline
    struct vkrt_submission:
        const vkrt_buffer* inputs
        size_t input_count
        const vkrt_buffer* outputs
        size_t output_count
        const vkrt_semaphore* waits
        size_t wait_count
        const vkrt_semaphore* signals
        size_t signal_count
    struct vkrt_memory:
        uint64_t planned_peak, measured_peak, weights, mapped, streamed, pool, state, staging
        uint64_t activations, host

    struct vkrt_table:
        size_t version
        int (*set_log)(vkrt_failure*, int, vkrt_log, void*) noexcept nogil
        int (*live_objects)(vkrt_failure*, size_t*) noexcept nogil
        int (*required_features)(vkrt_failure*, const char*, const char*,
                                 vkrt_requirements*) noexcept nogil
        int (*load)(vkrt_failure*, const char*, const vkrt_options*, vkrt_program*) noexcept nogil
        int (*load_memory)(vkrt_failure*, const void*, size_t, const vkrt_options*,
                           vkrt_program*) noexcept nogil
        int (*load_fd)(vkrt_failure*, int, uint64_t, uint64_t, const vkrt_options*,
                       vkrt_program*) noexcept nogil
        int (*close)(vkrt_failure*, vkrt_program) noexcept nogil
        int (*method_count)(vkrt_failure*, vkrt_program, size_t*) noexcept nogil
        int (*method_get)(vkrt_failure*, vkrt_program, size_t, vkrt_method_info*) noexcept nogil
        int (*input_get)(vkrt_failure*, vkrt_program, const char*, size_t,
                         vkrt_tensor_info*) noexcept nogil
        int (*output_get)(vkrt_failure*, vkrt_program, const char*, size_t,
                          vkrt_tensor_info*) noexcept nogil
        int (*run)(vkrt_failure*, vkrt_program, const char*, vkrt_state, const vkrt_tensor*, size_t,
                   vkrt_tensor*, size_t) noexcept nogil
        int (*submit)(vkrt_failure*, vkrt_program, const char*, vkrt_state, const vkrt_submission*,
                      uint64_t*) noexcept nogil
        int (*wait)(vkrt_failure*, vkrt_program, const char*) noexcept nogil
        int (*release_buffers)(vkrt_failure*, vkrt_program) noexcept nogil
        int (*cancel)(vkrt_failure*, vkrt_program, const char*) noexcept nogil
        int (*state_new)(vkrt_failure*, vkrt_program, const char*, vkrt_state*) noexcept nogil
        int (*state_close)(vkrt_failure*, vkrt_state) noexcept nogil
        int (*state_reset)(vkrt_failure*, vkrt_program, const char*, vkrt_state) noexcept nogil
        int (*state_save)(vkrt_failure*, vkrt_program, const char*, vkrt_state, void*, size_t,
                          size_t*) noexcept nogil
        int (*state_load)(vkrt_failure*, vkrt_program, const char*, vkrt_state, const void*,
                          size_t) noexcept nogil
        int (*memory_get)(vkrt_failure*, vkrt_program, vkrt_memory*) noexcept nogil
