from vkrt.capi.table cimport vkrt_failure, vkrt_program, vkrt_state

cdef extern nogil:
    # See the functions of vkrt.h: `vkrt_state_new` and those behind it.
    int state_new "vkrt_compiled_state_new"(vkrt_failure* failure, vkrt_program program,
                                            const char* name, vkrt_state* state)
    int state_close "vkrt_compiled_state_close"(vkrt_failure* failure, vkrt_state state)
    int state_reset "vkrt_compiled_state_reset"(vkrt_failure* failure, vkrt_program program,
                                                const char* name, vkrt_state state)
    int state_save "vkrt_compiled_state_save"(vkrt_failure* failure, vkrt_program program,
                                              const char* name, vkrt_state state, void* buffer,
                                              size_t nbytes, size_t* needed)
    int state_load "vkrt_compiled_state_load"(vkrt_failure* failure, vkrt_program program,
                                              const char* name, vkrt_state state, const void* data,
                                              size_t nbytes)
