/* Runs a compiled program in the ways in which a run can go: cancelled, not waited for, with buffers and
 * semaphores of a host, timed, in a forked process, and, where weights are streamed, with a file that cannot be read.
 *
 *     executions MODEL.vkx METHOD INPUTS EXPECTED
 *
 * INPUTS and EXPECTED have the bytes of all inputs and outputs, one behind the other. The program keeps nothing
 * from run to run. Prints what was tried; ends with 0 where every result and status was right. */
#include PROFILE /* the C that Cython makes of profile.pyx */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "executions.h"

enum { INPUT = 3, UNSUPPORTED = 6, SYSTEM = 7, FORKED = 13, CANCELLED = 15 }; /* of vkrt.h */
enum { MOST = 64, ALIGNMENT = 256, USAGE = 0x27, STAGING = 1 };

static VkrtError error;
static void *runner;
static Execution *execution;
static const Host nobody;

/* Inputs or outputs of the program: their bytes in a file */
typedef struct {
  int64_t count;
  size_t nbytes[MOST];
  char *data[MOST];
} Values;
static Values given, expected;

static Values read_values(const char *path, const Rows *rows) {
  Values values = {0};
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL && rows->count <= MOST);
  values.count = rows->count;
  for (int64_t i = 0; i < rows->count; i++) {
    const Array *array = &execution->records->maybe_host_array[rows->first + i].value;
    values.nbytes[i] = (size_t)(vkrt_product_of(execution->records, &array->sizes) * vkrt_itemsize(array->dtype));
    values.data[i] = malloc(values.nbytes[i] + 1);
    CHECK(values.data[i] != NULL && fread(values.data[i], 1, values.nbytes[i], file) == values.nbytes[i]);
  }
  fclose(file);
  return values;
}

static void free_values(Values *values) {
  for (int64_t i = 0; i < values->count; i++) free(values->data[i]);
}

static void write_inputs(void) {
  for (int64_t i = 0; i < given.count; i++)
    RIGHT(vkrt_write_input(vkrt_method_of(runner), i, given.data[i], given.nbytes[i], &error));
}

static void check_outputs(void) {
  for (int64_t i = 0; i < expected.count; i++) {
    char *found = malloc(expected.nbytes[i] + 1);
    CHECK(found != NULL);
    RIGHT(vkrt_read_output(vkrt_method_of(runner), i, found, expected.nbytes[i], &error));
    CHECK(memcmp(found, expected.data[i], expected.nbytes[i]) == 0);
    free(found);
  }
}

static void run_well(void) {
  write_inputs();
  RIGHT(vkrt_run_execution(execution, &nobody, NULL, NULL, &error));
  check_outputs();
}

/* Semaphores of the host's: a run waits for a value of `gate`, and signals one of `done`. */
static Timeline gate, done;

static void open_semaphores(void) {
  RIGHT(vkrt_make_timeline(execution->device, &gate, &error));
  RIGHT(vkrt_make_timeline(execution->device, &done, &error));
}

static void close_semaphores(void) {
  gate.on_compute = done.on_compute = 1; /* by lists, which do not note it */
  vkrt_close_timeline(&gate);
  vkrt_close_timeline(&done);
}

/* One of them at one value, as runs take it */
static SemaphoreList at_value(const Timeline *semaphore, uint64_t value) {
  SemaphoreList list;
  RIGHT(vkrt_make_semaphore_list(1, &list, &error));
  RIGHT(vkrt_put_semaphore(execution->device, &list, 0, semaphore->handle, &value, &error));
  return list;
}

static int has_reached(const Timeline *semaphore, uint64_t value) {
  int reached;
  RIGHT(vkrt_wait_for_value(semaphore, value, 0, &reached, &error));
  return reached;
}

static int looks; /* of `refuse`, before it says no */

static int refuse(void *data) {
  (void)data;
  return --looks < 0;
}

/* The device waits for a gate while the host loses patience. */
static void cancelled_runs(int closes) {
  const Host impatient = {refuse, NULL, NULL, NULL, NULL};
  int is_done = 1;
  open_semaphores();
  for (uint64_t run = 1; run <= 3; run++) {
    SemaphoreList waits = at_value(&gate, run), signals = at_value(&done, run);
    write_inputs();
    looks = (int)run - 1;
    CHECK(vkrt_run_execution(execution, &impatient, &waits, &signals, &error) == CANCELLED);
    vkrt_free_semaphore_list(&waits);
    vkrt_free_semaphore_list(&signals);
    CHECK(vkrt_is_at_work(execution));
    RIGHT(vkrt_is_execution_done(execution, &is_done, &error));
    CHECK(!is_done);
    looks = 0;
    CHECK(vkrt_wait_for_execution(execution, refuse, NULL, &error) == CANCELLED);
    CHECK(vkrt_is_at_work(execution));
    CHECK(has_reached(&done, run - 1) && !has_reached(&done, run));
    RIGHT(vkrt_raise_timeline(&gate, run, &error));
    if (run == 2) { /* or the next run waits */
      RIGHT(vkrt_wait_for_execution(execution, NULL, NULL, &error));
      CHECK(!vkrt_is_at_work(execution));
    }
    if (run < 3 || !closes) run_well();
    RIGHT(vkrt_finish_value(&done, run, &error));
  }
  close_semaphores();
  if (closes) vkrt_close_runner(runner); /* which waits for what was left */
  printf("cancelled\n");
}

/* Runs that the host does not wait for */
static void started_runs(void) {
  if (!vkrt_is_on_device(execution)) {
    CHECK(vkrt_start_execution(execution, NULL, NULL, &error) == UNSUPPORTED);
    return;
  }
  open_semaphores();
  SemaphoreList waits = at_value(&gate, 1), signals = at_value(&done, 7);
  write_inputs();
  RIGHT(vkrt_start_execution(execution, &waits, &signals, &error));
  CHECK(!has_reached(&done, 1) && vkrt_is_at_work(execution));
  RIGHT(vkrt_raise_timeline(&gate, 1, &error));
  RIGHT(vkrt_finish_value(&done, 7, &error));
  RIGHT(vkrt_wait_for_execution(execution, NULL, NULL, &error));
  CHECK(!vkrt_is_at_work(execution));
  check_outputs();
  vkrt_free_semaphore_list(&waits);
  vkrt_free_semaphore_list(&signals);
  close_semaphores();
  printf("started\n");
}

/* A buffer of a host's for each value, `offset` bytes from its start */
typedef struct {
  Allocator allocator;
  Buffer buffers[2 * MOST];
  Block blocks[2 * MOST];
  ExternalBuffer bindings[2 * MOST];
} ExternalMemory;

static char *make_external(ExternalMemory *external, int number, size_t nbytes, uint64_t offset) {
  Buffer *buffer = &external->buffers[number];
  Block *block = &external->blocks[number];
  uint64_t room = (nbytes + 15) / 16 * 16;
  RIGHT(vkrt_make_buffer(execution->device, offset + room + ALIGNMENT, USAGE, 0, buffer, &error));
  RIGHT(vkrt_allocate_block(&external->allocator, buffer->memory.required.size, buffer->memory.required.alignment,
                            buffer->memory.required.memoryTypeBits, STAGING, block, &error));
  RIGHT(vkrt_bind_buffer(buffer, block, 0, &error));
  memset(block->mapped, 0xa5, offset + room + ALIGNMENT);
  external->bindings[number].handle = buffer->handle;
  external->bindings[number].offset = offset;
  external->bindings[number].nbytes = room;
  return (char *)block->mapped + offset;
}

static const Range *input_range(int64_t number) {
  return &execution->records->maybe_host_array[execution->plan->inputs.first + number].value.range;
}

/* The device copies inputs to where kernels read them, with zeros behind their elements, whatever was there. */
static void copied_inputs(void) {
  const Handles *handles = &execution->handles;
  for (int64_t i = 0; i < given.count; i++) {
    memset(vkrt_host_address(handles, input_range(i)), 0xff, (size_t)input_range(i)->nbytes);
    RIGHT(vkrt_flush_range(handles, input_range(i), &error));
  }
  RIGHT(vkrt_copy_external_inputs(execution, &nobody, &error));
  for (int64_t i = 0; i < given.count; i++) {
    const char *memory = vkrt_host_address(handles, input_range(i));
    RIGHT(vkrt_invalidate_range(handles, input_range(i), &error));
    CHECK(memcmp(memory, given.data[i], given.nbytes[i]) == 0);
    for (size_t k = given.nbytes[i]; k < (size_t)input_range(i)->nbytes; k++) CHECK(memory[k] == 0);
  }
}

static void external_buffers(uint64_t offset, int in_place) {
  static ExternalMemory external;
  ExternalPlan plan;
  ExternalBuffer *inputs = external.bindings, *outputs = external.bindings + MOST;
  char *memory[2 * MOST] = {0};
  memset(&external, 0, sizeof external);
  RIGHT(vkrt_open_allocator(execution->device, &external.allocator, &error));
  for (int64_t i = 0; i < given.count; i++) {
    memory[i] = make_external(&external, (int)i, given.nbytes[i], offset);
    memcpy(memory[i], given.data[i], given.nbytes[i]);
  }
  for (int64_t i = 0; i < expected.count; i++)
    memory[MOST + i] = make_external(&external, (int)(MOST + i), expected.nbytes[i], offset);
  RIGHT(vkrt_plan_external(execution->records, execution->plan, ALIGNMENT, inputs, outputs, &plan, &error));
  CHECK((plan.binding.in_place_count > 0) == in_place);
  CHECK(in_place || vkrt_copied_bytes(&plan.binding) > 0);
  vkrt_unbind_execution(execution);
  RIGHT(vkrt_bind_shape(vkrt_method_of(runner), execution, NULL, &plan.binding, &error));
  vkrt_free_external_plan(&plan);
  for (int run = 0; run < 2; run++) {
    for (int64_t i = 0; i < expected.count; i++) memset(memory[MOST + i], 0xa5, expected.nbytes[i]);
    if (!in_place) copied_inputs();
    if (run == 0 || !vkrt_is_on_device(execution)) {
      RIGHT(vkrt_run_execution(execution, &nobody, NULL, NULL, &error));
    } else {
      RIGHT(vkrt_start_execution(execution, NULL, NULL, &error));
      RIGHT(vkrt_wait_for_execution(execution, NULL, NULL, &error));
    }
    for (int64_t i = 0; i < expected.count; i++) {
      const char *end = memory[MOST + i] + (expected.nbytes[i] + 15) / 16 * 16;
      CHECK(memcmp(memory[MOST + i], expected.data[i], expected.nbytes[i]) == 0);
      for (int k = 0; k < ALIGNMENT; k++) CHECK((unsigned char)end[k] == 0xa5);
    }
  }
  /* One of an output that is too small, and two in the same bytes */
  outputs[0].nbytes = expected.nbytes[0] - 1;
  CHECK(vkrt_plan_external(execution->records, execution->plan, ALIGNMENT, inputs, outputs, &plan, &error) == INPUT);
  CHECK(strstr(error.text, "out 0: expected a DeviceBuffer of ") != NULL);
  vkrt_free_external_plan(&plan);
  vkrt_unbind_execution(execution);
  RIGHT(vkrt_bind_shape(vkrt_method_of(runner), execution, NULL, NULL, &error));
  for (int i = 0; i < 2 * MOST; i++) {
    vkrt_close_buffer(&external.buffers[i]);
    vkrt_free_block(&external.blocks[i]);
  }
  vkrt_close_allocator(&external.allocator);
  run_well();
  printf("buffers %s\n", in_place ? "in place" : "copied");
}

static void profiles(int on_device) {
  Profile profile;
  StepTime run, *steps;
  int status = vkrt_open_profile(execution, execution->records, execution->plan, on_device, &profile, &error);
  if (!on_device && status != 0) {
    CHECK(status == (execution->streamer != NULL ? UNSUPPORTED : INPUT));
    vkrt_close_profile(&profile);
    return;
  }
  RIGHT(status);
  steps = calloc((size_t)profile.count + 1, sizeof *steps);
  CHECK(steps != NULL && profile.count > 0);
  for (int repeat = 0; repeat < 2; repeat++) {
    write_inputs();
    RIGHT(vkrt_run_profile(&profile, &nobody, &run, steps, &error));
    check_outputs();
    for (int64_t i = 0; i < profile.count; i++)
      CHECK(steps[i].start >= run.start && steps[i].seconds >= 0 && (i == 0 || steps[i].start >= steps[i - 1].start));
  }
  vkrt_close_profile(&profile);
  free(steps);
  run_well();
  printf("profile %s\n", on_device ? "of the device" : "of the host");
}

/* A weight that cannot be read fails the run that needs it, and no later one. */
static void broken_streams(void) {
  if (execution->streamer == NULL) return;
  for (uint64_t reads = 1; reads < 40; reads += 7) {
    int failed = 0;
    vkrt_fail_read_after(reads);
    for (int run = 0; run < 40 && !failed; run++) {
      int status = vkrt_run_execution(execution, &nobody, NULL, NULL, &error);
      CHECK(status == 0 || status == SYSTEM);
      failed = status != 0;
    }
    CHECK(failed);
    run_well();
  }
  printf("broken streams\n");
}

/* A child has neither the device nor the thread that streams. */
static void forked_process(void) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    status = vkrt_run_execution(execution, &nobody, NULL, NULL, &error) == FORKED ? 0 : 1;
    status |= vkrt_is_at_work(execution) || vkrt_wait_for_execution(execution, NULL, NULL, &error) != 0 ? 2 : 0;
    vkrt_close_runner(runner);
    _exit(status);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  run_well();
  printf("forked\n");
}

/* With VKRT_VALIDATION=1 the validation layer watches. That its own threads come late it calls a bug of
 * its own, and the loader says that the environment asks for layers (LAYER_BUGS in
 * tests/host_device.py, EXPECTED in tests/conftest.py). */
static void check_messages(void) {
  int number, lost;
  const Message *messages = vkrt_hold_messages(&number, &lost);
  for (int i = 0; i < number; i++)
    if (strstr(messages[i].id, "-state-timeout") == NULL
        && strstr(messages[i].text, "env var 'VK_INSTANCE_LAYERS'") == NULL) {
      printf("the validation layer: %s: %s\n", messages[i].id, messages[i].text);
      exit(1);
    }
  vkrt_let_messages_go();
}

int main(int count, char **arguments) {
  /* Kept to the end, so that the driver is not unloaded: reports of sanitizers name it. */
  static void *instance;
  if (count != 5) return 2;
  RIGHT(vkrt_acquire_instance(&instance, &error));
  RIGHT(vkrt_open_runner(arguments[1], arguments[2], NULL, &runner, &error));
  execution = vkrt_execution_of(vkrt_method_of(runner));
  given = read_values(arguments[3], &execution->plan->inputs);
  expected = read_values(arguments[4], &execution->plan->outputs);
  for (int run = 0; run < 3; run++) run_well();
  started_runs();
  external_buffers(ALIGNMENT, 1);
  external_buffers(4, 0);
  if (execution->device->timestamp_bits > 0) profiles(1);
  profiles(0);
  broken_streams();
  forked_process();
  cancelled_runs(0);
  cancelled_runs(1);
  check_messages();
  free_values(&given);
  free_values(&expected);
  return 0;
}
