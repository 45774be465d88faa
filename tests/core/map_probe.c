/* Tries whether the device's driver reads the pages of a file in place, where the driver does what `HOW` says:
 *
 *     map_probe FILE HOW [WHAT]
 *
 * HOW is "read" (what the driver at hand does), "elsewhere" (other pages are imported), "refuse" (none are), "die"
 * (with the import), "deaf" (the copy does not end) or "full" (no memory is left). WHAT is what is unlike it is on this
 * machine, of the device or of the system. Asks three times, the last time as another process would. Prints the
 * answers and how often was tried; "none" where the device imports no pages. */
#define _GNU_SOURCE
#include MAP_PROBE /* the C that Cython makes of map_probe.pyx */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct __pyx_t_4vkrt_4core_6device_Device Device;
typedef struct __pyx_t_4vkrt_4core_8physical_Physical Physical;
typedef struct __pyx_t_4vkrt_4core_8imported_HostImport HostImport;
typedef struct __pyx_t_4vkrt_4core_5fence_Fence Fence;
typedef struct __pyx_t_4vkrt_4core_4file_File File;

int vkrt_acquire_instance(void **instance, VkrtError *error);
void vkrt_release_instance(void *instance);
int vkrt_usable_devices(void *instance, VkPhysicalDevice *found, int *number, VkrtError *error);
int vkrt_read_physical(void *instance, VkPhysicalDevice handle, Physical *physical, VkrtError *error);
void vkrt_free_physical(Physical *physical);
int vkrt_open_file(const char *path, File *file, VkrtError *error);
void vkrt_close_file(File *file);
int vkrt_is_importable(const Device *device, uint32_t usage);
void vkrt_fail_allocation_after(int n);
void vkrt_wait_for_given_up(void);

static const char *how, *what;
static int tries;

/* In the place of the core's */
int vkrt_import_host(Device *device, void *address, uint64_t size, uint32_t usage, HostImport *imported,
                     VkrtError *error) {
  int (*import)(Device *, void *, uint64_t, uint32_t, HostImport *, VkrtError *) =
      (int (*)(Device *, void *, uint64_t, uint32_t, HostImport *, VkrtError *))dlsym(RTLD_NEXT, "vkrt_import_host");
  tries++;
  if (strcmp(how, "die") == 0) _exit(9);
  if (strcmp(how, "refuse") == 0) return error->status = VKRT_ERROR_DEVICE;
  if (strcmp(how, "elsewhere") == 0)
    address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return import(device, address, size, usage, imported, error);
}

int vkrt_wait_for_fence(const Fence *fence, uint64_t timeout, int *done, VkrtError *error) {
  int (*wait)(const Fence *, uint64_t, int *, VkrtError *) =
      (int (*)(const Fence *, uint64_t, int *, VkrtError *))dlsym(RTLD_NEXT, "vkrt_wait_for_fence");
  *done = 0;
  return strcmp(how, "deaf") == 0 ? 0 : wait(fence, timeout, done, error);
}

int uname(struct utsname *system) {
  memset(system, 0, sizeof *system);
  strcpy(system->release, strcmp(what, "kernel") == 0 ? "another" : "one");
  return 0;
}

static void change(Physical *physical) {
  VkPhysicalDeviceProperties *properties = &physical->properties.properties;
  physical->driver.driverID = 987654; /* none that there is */
  if (strcmp(what, "driver_version") == 0) properties->driverVersion = 1234;
  if (strcmp(what, "driver_info") == 0) strcpy(physical->driver.driverInfo, "another");
  if (strcmp(what, "cache_uuid") == 0) properties->pipelineCacheUUID[3] ^= 1;
  if (strcmp(what, "device_id") == 0) properties->deviceID = 7;
  if (strcmp(what, "name") == 0) strcpy(properties->deviceName, "another");
}

int main(int count, char **arguments) {
  static Device device;
  static Physical physical;
  static File file;
  static VkrtError error;
  VkPhysicalDevice found[64];
  void *instance;
  int number, answers[3];
  if (count < 3) return 2;
  how = arguments[2];
  what = count > 3 ? arguments[3] : "";
  if (vkrt_acquire_instance(&instance, &error) || vkrt_usable_devices(instance, found, &number, &error)
      || vkrt_read_physical(instance, found[0], &physical, &error)
      || vkrt_open_device(instance, &physical, &device, &error) || vkrt_open_file(arguments[1], &file, &error)) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  vkrt_release_instance(instance);
  if (device.import_alignment == 0 || device.import_alignment > (uint64_t)sysconf(_SC_PAGESIZE)
      || !vkrt_is_importable(&device, 0x27)) {
    printf("none\n");
  } else {
    change(&physical);
    for (int i = 0; i < 3; i++) {
      if (i == 2) __pyx_v_4vkrt_4core_9map_probe_key_count = 0;
      if (strcmp(how, "full") == 0) vkrt_fail_allocation_after(1);
      answers[i] = vkrt_reads_files(&device, &physical, &file, 1);
    }
    printf("%d %d %d %d\n", answers[0], answers[1], answers[2], tries);
  }
  vkrt_close_file(&file);
  vkrt_close_device(&device);
  vkrt_free_physical(&physical);
  vkrt_wait_for_given_up();
  return 0;
}
