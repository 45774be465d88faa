/* What `executions.c` calls of the core, whose types are in the C that Cython makes of it. */
typedef struct __pyx_t_4vkrt_4core_9execution_Execution Execution;
typedef struct __pyx_t_4vkrt_4core_7profile_Profile Profile;
typedef struct __pyx_t_4vkrt_4core_11host_kernel_Host Host;
typedef struct __pyx_t_4vkrt_4core_11host_kernel_StepTime StepTime;
typedef struct __pyx_t_4vkrt_4core_5batch_SemaphoreList SemaphoreList;
typedef struct __pyx_t_4vkrt_4core_9semaphore_TimelineSemaphore Timeline;
typedef struct __pyx_t_4vkrt_4core_8external_ExternalBuffer ExternalBuffer;
typedef struct __pyx_t_4vkrt_4core_8external_IOBinding IOBinding;
typedef struct __pyx_t_4vkrt_4core_9allocator_Allocator Allocator;
typedef struct __pyx_t_4vkrt_4core_5block_Block Block;
typedef struct __pyx_t_4vkrt_4core_8resource_Buffer Buffer;
typedef struct __pyx_t_4vkrt_4core_6device_Device Device;
typedef struct __pyx_t_4vkrt_4core_7records_ExecutionPlanRow Plan;
typedef struct __pyx_t_4vkrt_4core_7records_Records Records;
typedef struct __pyx_t_4vkrt_4core_7records_HostArrayRow Array;
typedef struct __pyx_t_4vkrt_4core_7records_Rows Rows;
typedef struct __pyx_t_4vkrt_4core_7records_RangeRow Range;
typedef struct __pyx_t_4vkrt_4core_7handles_Handles Handles;
/* As vkrt/core/external_plan.pxd has it */
typedef struct {
  IOBinding binding;
  void *places, *copies_in, *copies_out;
} ExternalPlan;
/* As vkrt/core/messages.pxd has it */
typedef struct {
  char *id, *text;
  int error;
} Message;

const Message *vkrt_hold_messages(int *number, int *lost);
void vkrt_let_messages_go(void);

int vkrt_acquire_instance(void **instance, VkrtError *error);
int vkrt_open_runner(const char *path, const char *method, void *run_kernel, void **runner, VkrtError *error);
void vkrt_close_runner(void *runner);
void *vkrt_method_of(void *runner);
Execution *vkrt_execution_of(void *method);
void vkrt_unbind_execution(Execution *);
int vkrt_bind_shape(void *method, Execution *, const void *state, const IOBinding *binding, VkrtError *error);
int vkrt_write_input(void *method, int64_t number, const void *data, size_t nbytes, VkrtError *error);
int vkrt_read_output(void *method, int64_t number, void *data, size_t nbytes, VkrtError *error);
int vkrt_run_execution(Execution *, const Host *, const SemaphoreList *, const SemaphoreList *, VkrtError *);
int vkrt_start_execution(Execution *, const SemaphoreList *, const SemaphoreList *, VkrtError *);
int vkrt_is_at_work(const Execution *);
int vkrt_is_execution_done(const Execution *, int *done, VkrtError *);
int vkrt_is_on_device(const Execution *);
int vkrt_make_timeline(Device *, Timeline *, VkrtError *);
void vkrt_close_timeline(Timeline *);
int vkrt_raise_timeline(const Timeline *, uint64_t value, VkrtError *);
int vkrt_wait_for_value(const Timeline *, uint64_t value, uint64_t timeout, int *reached, VkrtError *);
int vkrt_finish_value(const Timeline *, uint64_t value, VkrtError *);
int vkrt_make_semaphore_list(uint32_t size, SemaphoreList *, VkrtError *);
void vkrt_free_semaphore_list(SemaphoreList *);
int vkrt_put_semaphore(const Device *, SemaphoreList *, uint32_t index, VkSemaphore handle, const uint64_t *value,
                       VkrtError *);
int vkrt_plan_external(const Records *, const Plan *, uint64_t alignment, const ExternalBuffer *inputs,
                       const ExternalBuffer *outputs, ExternalPlan *, VkrtError *);
void vkrt_free_external_plan(ExternalPlan *);
uint64_t vkrt_copied_bytes(const IOBinding *);
int vkrt_open_allocator(Device *, Allocator *, VkrtError *);
void vkrt_close_allocator(Allocator *);
int vkrt_make_buffer(Device *, uint64_t size, uint32_t usage, int use, Buffer *, VkrtError *);
int vkrt_bind_buffer(Buffer *, Block *, uint64_t offset, VkrtError *);
void vkrt_close_buffer(Buffer *);
int vkrt_allocate_block(Allocator *, uint64_t size, uint64_t alignment, uint32_t types, int purpose, Block *,
                        VkrtError *);
void vkrt_free_block(Block *);
char *vkrt_host_address(const Handles *, const Range *);
int vkrt_flush_range(const Handles *, const Range *, VkrtError *);
int vkrt_invalidate_range(const Handles *, const Range *, VkrtError *);
int vkrt_copy_external_inputs(Execution *, const Host *, VkrtError *);
int64_t vkrt_product_of(const Records *, const Rows *sizes);
int64_t vkrt_itemsize(int64_t dtype);
void vkrt_fail_read_after(uint64_t n);
