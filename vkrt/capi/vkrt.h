/* vkrt.h - runs ExecuTorch programs (.pte) on Vulkan compute from C, C++ and whatever calls C.
 *
 * Plain C from C89 to C++20. README.md beside this file explains it at length.
 *
 * A compiled program (.vkx, made by `vkrt compile`) is run by this library alone. A .pte file takes
 * a Python with the package vkrt, which is started when the first one is loaded, and not before.
 * A compiled program has the shaders that it runs: trust its file as you trust your own code.
 *
 * Every function returns a code: VKRT_OK, or what is wrong; `vkrt_last_error_text` then says it in
 * words. All of them may be called by any thread, in any order, also with handles that are closed
 * (VKRT_ERROR_CLOSED). No pointer that is passed is kept after the call, unless that is said.
 *
 * The sizes of structs may grow in later versions. A struct whose first field is `size` has to be
 * zeroed, and `size` set to its sizeof, before it is passed: `vkrt_options o = {sizeof o};`. Zero
 * is the default of every other field.
 */
#ifndef VKRT_H
#define VKRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VKRT_API __attribute__((visibility("default")))
#else
#define VKRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. Libraries of another ABI have another file name: libvkrt.so.VKRT_ABI. */
#define VKRT_ABI 0

enum {
    VKRT_MAX_RANK = 16,
    VKRT_MAX_NAME = 128 /* bytes of a name with its zero; longer ones are cut */
};

/* Codes */
enum {
    VKRT_OK = 0,
    VKRT_ERROR_PYTHON = 1,        /* Python or the package cannot be found, or is another version;
                                     never of a compiled program */
    VKRT_ERROR_CLOSED = 2,        /* no such handle, or not any more */
    VKRT_ERROR_INPUT = 3,         /* an argument does not fit */
    VKRT_ERROR_CAPACITY = 4,      /* the caller's memory is too small; the size needed is told */
    VKRT_ERROR_FORMAT = 5,        /* the program's file is damaged */
    VKRT_ERROR_UNSUPPORTED = 6,   /* the program needs what vkrt or the device does not have */
    VKRT_ERROR_SYSTEM = 7,        /* a file cannot be read, .. */
    VKRT_ERROR_MEMORY = 8,        /* the host's memory ran out */
    VKRT_ERROR_LOADER = 9,        /* there is no Vulkan library or no driver */
    VKRT_ERROR_DEVICE = 10,       /* a Vulkan call failed */
    VKRT_ERROR_DEVICE_MEMORY = 11, /* the device's memory ran out */
    VKRT_ERROR_DEVICE_LOST = 12,  /* the program has to be loaded again */
    VKRT_ERROR_FORKED = 13,       /* the process was forked since */
    VKRT_ERROR_STATE = 14,        /* a run that failed left a state half changed: reset or load it */
    VKRT_ERROR_CANCELLED = 15,    /* by `vkrt_cancel`, or by a callback */
    VKRT_ERROR_INTERNAL = 16      /* a bug of vkrt */
};

/* Element types. A bool is one byte; float16 and bfloat16 are two. */
enum {
    VKRT_DTYPE_DECLARED = 0, /* in `vkrt_tensor`: what the method declares */
    VKRT_FLOAT32 = 1,
    VKRT_FLOAT16 = 2,
    VKRT_FLOAT64 = 3,
    VKRT_BOOL = 4,
    VKRT_UINT8 = 5,
    VKRT_INT8 = 6,
    VKRT_INT16 = 7,
    VKRT_INT32 = 8,
    VKRT_INT64 = 9,
    VKRT_UINT16 = 10,
    VKRT_UINT32 = 11,
    VKRT_UINT64 = 12
};

/* Handles are numbers in the guise of pointers: never dereferenced, never used twice. 0 is none. */
typedef struct vkrt_program_s *vkrt_program;
typedef struct vkrt_state_s *vkrt_state;

/* ---- The library ---- */

/* Of the library, such as "0.1.0". Starts nothing. */
VKRT_API const char *vkrt_version(void);

/* Where Python is: a folder with lib/python3.X (or a virtual environment) in which the package
 * vkrt is installed. By default what the environment variable VKRT_HOME says, or the folder that
 * the library itself lies in. To be called before Python is started. */
VKRT_API int vkrt_set_home(const char *folder);

/* Of the last call of this thread that failed: its code, and a sentence in UTF-8 (cut where it is
 * longer than 4 KB), valid until the next call of this thread fails. */
VKRT_API int vkrt_last_error(void);
VKRT_API const char *vkrt_last_error_text(void);

/* The name of a code, such as "VKRT_ERROR_INPUT". */
VKRT_API const char *vkrt_code_name(int code);

/* What vkrt says about its decisions, a line at a time. Level 1: devices and memory plans, 2: the
 * phases of loads, 3: nodes, 4: dispatches; 0 is silence. Compiled programs have nothing to say beyond
 * level 2. Any thread may call back, and must not call vkrt from there. */
typedef void (*vkrt_log)(int level, const char *line, void *data);
VKRT_API int vkrt_set_log(int level, vkrt_log callback, void *data);

/* Vulkan objects that are alive in the process, for tests that compare. Those of a device that was
 * given up (see VKRT_ERROR_DEVICE_LOST's text) stay to the end of the process. */
VKRT_API int vkrt_live_objects(size_t *count);

/* ---- Devices ---- */

typedef struct vkrt_device_info {
    size_t size;
    char name[256];
    char type[16]; /* "cpu", "integrated", "discrete", "virtual" or "other" */
    char driver[256];
    char api_version[16]; /* of Vulkan, such as "1.3.230" */
    uint32_t vendor_id;
    uint32_t device_id;
    uint64_t local_memory; /* bytes of the largest heap of its own */
} vkrt_device_info;

VKRT_API int vkrt_device_count(size_t *count);
VKRT_API int vkrt_device_get(size_t index, vkrt_device_info *info);

/* ---- The host's own device ---- */

/* A Vulkan device that the host has made, for `vkrt_options`. The handles are Vulkan's, and stay the
 * host's: it keeps them alive until the program is closed. Programs that are loaded with the same
 * values here share pipelines, and what vkrt makes of the device. */
typedef struct vkrt_host_device {
    size_t size;
    void *instance; /* of Vulkan 1.1 or later */
    void *physical_device;
    void *device;
    void *queue;
    uint32_t queue_family; /* which computes */
    const char *const *features; /* that were enabled: names as those of `vkrt_requirements` */
    size_t feature_count;
    /* vkGetInstanceProcAddr; null for the one of the system's Vulkan library */
    void (*get_instance_proc_addr)(void);
    /* Serialize the queue: every vkQueueSubmit is made between the two, and nothing else is done
     * there. Any thread calls them, with `lock_data`. Both or none; without them the host does not
     * use the queue from another thread while calls with the program are in progress. */
    void (*lock)(void *data);
    void (*unlock)(void *data);
    void *lock_data;
} vkrt_host_device;

/* What vkrt needs of such a device, and what it uses beside that if it was enabled. The arrays stay
 * valid to the end of the process. */
typedef struct vkrt_requirements {
    size_t size;
    char api_version[16]; /* the least, such as "1.1" */
    uint32_t queue_flags; /* VkQueueFlags that the queue's family has to have */
    const char *const *features; /* fields of Vulkan's structs, such as "timelineSemaphore" */
    size_t feature_count;
    const char *const *extensions; /* of the device; some only before a version has them */
    size_t extension_count;
    const char *const *optional_features;
    size_t optional_feature_count;
    const char *const *optional_extensions;
    size_t optional_extension_count;
} vkrt_requirements;

/* For a program, or with a null path for any; for a compiled program what all of its targets need.
 * `weights` is as in `vkrt_options`, null for "auto". Needs no driver. */
VKRT_API int vkrt_required_features(const char *path, const char *weights,
                                    vkrt_requirements *requirements);

/* ---- Programs ---- */

/* Told which part of a load is done, by a name for people: "read the program", "start the driver",
 * "build the graph", "lower", "plan memory" ("read the plan" in place of these three, where one is
 * kept or compiled), "pipelines", "weights", "allocate and record". The load ends with VKRT_ERROR_CANCELLED where
 * this returns anything but 0. Must not call vkrt. */
typedef int (*vkrt_progress)(const char *what, void *data);

typedef struct vkrt_options {
    size_t size;
    const char *device;      /* a type ("discrete", "integrated", "cpu"), a part of a device's name, or
                                its number as "#1"; the best one */
    uint64_t memory_budget;  /* maximum of bytes on the device; without a maximum */
    int smallest_memory;     /* not 0: as few bytes on the device as possible */
    const char *storage;     /* these have the values that `vkrt.load` has in Python */
    const char *weights;
    const char *prefetch;
    const char *packed;      /* no longer used: has to be null (`vkrt compile` packs weights) */
    const char *winograd;
    const char *fusions;
    const char *specialize;
    const char *pipeline_cache;
    const char *const *data_paths; /* `.ptd` files with constants that were exported apart */
    size_t data_path_count;
    vkrt_progress progress;
    void *progress_data;
    const vkrt_host_device *host_device; /* in place of `device` */
    const char *plan_cache;
    const char *order;
    uint64_t chunk;              /* bytes of the staging buffer */
    const int *stream_lookahead; /* null: what the plan finds best */
    const int *keep_cached;      /* null: not 0 where the file is small beside the memory */
    const char *prefer;
    const char *cache;
} vkrt_options;

/* Loads a program from a file and gets the method "forward", or the only one, ready to run.
 * `options` may be null. For a compiled program the options that decide what is loaded were decided
 * when it was compiled: others than the default are VKRT_ERROR_INPUT. */
VKRT_API int vkrt_load(const char *path, const vkrt_options *options, vkrt_program *program);

/* The same from memory, which has to stay as it is until the program is closed. Of compiled programs
 * with weights that are to be read in place, here and in a part of a file, these have to lie at
 * multiples of what the device asks for (256 always is one); other targets, such as "generic", do
 * not ask for it. */
VKRT_API int vkrt_load_memory(const void *data, size_t size, const vkrt_options *options,
                              vkrt_program *program);

/* The same from a part of an open file, such as an uncompressed asset of an Android package. The
 * descriptor may be closed after the call. A length of 0 is everything up to the file's end. */
VKRT_API int vkrt_load_fd(int fd, uint64_t offset, uint64_t length, const vkrt_options *options,
                          vkrt_program *program);

/* Releases everything, states included; waits for a run in progress. */
VKRT_API int vkrt_close(vkrt_program program);

/* ---- What a program is ---- */

typedef struct vkrt_method_info {
    size_t size;
    char name[VKRT_MAX_NAME];
    size_t input_count;
    size_t output_count;
} vkrt_method_info;

typedef struct vkrt_tensor_info {
    size_t size;
    char name[VKRT_MAX_NAME]; /* as the program has it, else "input_0", "output_0", .. */
    int32_t dtype;
    int32_t rank;
    int64_t sizes[VKRT_MAX_RANK]; /* upper bounds */
    uint32_t dynamic;             /* bit d: calls may have less than sizes[d] */
    uint64_t nbytes;              /* at the upper bounds */
} vkrt_tensor_info;

/* `method` is the name of one; null is "forward". */
VKRT_API int vkrt_method_count(vkrt_program program, size_t *count);
VKRT_API int vkrt_method_get(vkrt_program program, size_t index, vkrt_method_info *info);
VKRT_API int vkrt_input_get(vkrt_program program, const char *method, size_t index,
                            vkrt_tensor_info *info);
VKRT_API int vkrt_output_get(vkrt_program program, const char *method, size_t index,
                             vkrt_tensor_info *info);

/* ---- Running ---- */

/* Memory of the caller's, contiguous, with the last dimension next to each other. Where `dtype` is
 * VKRT_DTYPE_DECLARED, an input has the dtype and the sizes that the method declares, and `rank`
 * and `sizes` are not looked at. */
typedef struct vkrt_tensor {
    void *data;
    size_t nbytes; /* of the memory */
    int32_t dtype;
    int32_t rank;
    int64_t sizes[VKRT_MAX_RANK];
} vkrt_tensor;

/* Runs a method once. Inputs are read and outputs are written before the call returns.
 *
 * Of outputs `data` and `nbytes` are read; `nbytes`, `dtype`, `rank` and `sizes` say afterwards
 * what the output is at these inputs. If an output is larger than its memory nothing is run, the
 * code is VKRT_ERROR_CAPACITY, and the `nbytes` of all outputs are those that are needed.
 *
 * `state` is one of `vkrt_state_new`, of this method, or null for the method's first. A method runs
 * once at a time; several methods, programs and threads work side by side. */
VKRT_API int vkrt_run(vkrt_program program, const char *method, vkrt_state state,
                      const vkrt_tensor *inputs, size_t input_count,
                      vkrt_tensor *outputs, size_t output_count);

/* Ends the run of a method that is in progress in another thread, which gets VKRT_ERROR_CANCELLED
 * within about a tenth of a second; nothing where there is none. The device finishes what it was
 * given; the next call waits for that. */
VKRT_API int vkrt_cancel(vkrt_program program, const char *method);

/* ---- Runs on buffers of the host's own device ---- */

/* A part of a VkBuffer on `vkrt_options.host_device`, which holds an input or an output: contiguous
 * elements of the declared dtype, which may not have 64 bits nor be int16. The buffer is used by
 * the queue's family (or by several: VK_SHARING_MODE_CONCURRENT) and has the usages STORAGE_BUFFER,
 * UNIFORM_TEXEL_BUFFER, TRANSFER_SRC and TRANSFER_DST. It stays alive until `vkrt_release_buffers`
 * or `vkrt_close`. Parts of one VkBuffer may overlap as inputs, or as an input and an output, where
 * the input is copied before the run; outputs that overlap are VKRT_ERROR_INPUT. Memory to which
 * several VkBuffers are bound is the host's to keep apart. */
typedef struct vkrt_buffer {
    uint64_t buffer; /* the VkBuffer */
    uint64_t offset; /* a multiple of 256 for use in place; otherwise the device copies */
    uint64_t nbytes; /* of an output, those behind the tensor up to a multiple of 16 are written too */
    int32_t has_sizes; /* 0: those that the method declares; else `rank` and `sizes` say */
    int32_t rank;
    int64_t sizes[VKRT_MAX_RANK];
} vkrt_buffer;

typedef struct vkrt_semaphore {
    uint64_t semaphore; /* the VkSemaphore */
    uint64_t value;     /* of a timeline, what is waited for or signaled */
    int32_t is_timeline;
} vkrt_semaphore;

typedef struct vkrt_submission {
    size_t size;
    const vkrt_buffer *inputs;
    size_t input_count;
    const vkrt_buffer *outputs;
    size_t output_count;
    const vkrt_semaphore *waits; /* before anything of the run */
    size_t wait_count;
    const vkrt_semaphore *signals; /* behind all of it, also where the run fails */
    size_t signal_count;
} vkrt_submission;

/* Begins a run, and returns when the device has it: the device waits, reads inputs, writes outputs
 * and signals, and nothing passes through the host's memory. `copied` (or null) says how many bytes
 * the device copies, because its kernels cannot use a buffer in place. What the structs point to is
 * not needed after the call; the next call for the method waits for the run.
 *
 * Where the host has a part in a run (kernels on the host, streamed weights), a thread of vkrt's does
 * that; if then a binary semaphore is signaled, the call returns when the run is over. */
VKRT_API int vkrt_submit(vkrt_program program, const char *method, vkrt_state state,
                         const vkrt_submission *submission, uint64_t *copied);

/* Waits for the run that was submitted last, and says what went wrong in it. */
VKRT_API int vkrt_wait(vkrt_program program, const char *method);

/* Forgets the buffers of all submissions, which may then be destroyed; waits for runs in progress. */
VKRT_API int vkrt_release_buffers(vkrt_program program);

/* ---- States: what a method keeps from run to run ---- */

/* One more, with the initial values. */
VKRT_API int vkrt_state_new(vkrt_program program, const char *method, vkrt_state *state);
VKRT_API int vkrt_state_close(vkrt_state state);

/* `state` is one of `vkrt_state_new`, of this method, or null for the method's first. */
VKRT_API int vkrt_state_reset(vkrt_program program, const char *method, vkrt_state state);

/* Saved values are bytes that a later process can load, too. `needed` says how many they are; with
 * a null buffer nothing else happens. VKRT_ERROR_CAPACITY where the buffer has fewer. */
VKRT_API int vkrt_state_save(vkrt_program program, const char *method, vkrt_state state,
                             void *buffer, size_t nbytes, size_t *needed);
VKRT_API int vkrt_state_load(vkrt_program program, const char *method, vkrt_state state,
                             const void *data, size_t nbytes);

/* ---- Memory ---- */

/* Bytes on the device. */
typedef struct vkrt_memory {
    size_t size;
    uint64_t planned_peak;  /* predicted before anything was allocated */
    uint64_t measured_peak; /* the most that was allocated at once */
    uint64_t weights;       /* that have device memory to themselves */
    uint64_t mapped;        /* read in place in the file: no device memory */
    uint64_t streamed;      /* read from the file anew in every run */
    uint64_t pool;          /* that they are streamed through */
    uint64_t state;
    uint64_t staging;       /* while weights are packed; then released */
    uint64_t activations;
    uint64_t host;          /* host memory that holds inputs and outputs */
} vkrt_memory;

VKRT_API int vkrt_memory_get(vkrt_program program, vkrt_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
