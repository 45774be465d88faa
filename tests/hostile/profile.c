/* Reads the profile that VKRT_HOSTILE_PROFILE names: lines of a key and words, made of a JSON file
 * by tests/hostile_device.py, which has checked them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

struct profile profile;

static uint64_t number(const char** words) {
  char* end;
  uint64_t value = strtoull(*words, &end, 0);
  if (end == *words) {
    fprintf(stderr, "hostile: a number is missing at '%s'\n", *words);
    abort();
  }
  *words = end;
  return value;
}

static void line(const char* key, const char* words) {
  struct profile* p = &profile;
  VkPhysicalDeviceMemoryProperties* memory = &p->memory;
#define NUMBER(field) else if (!strcmp(key, #field)) p->field = number(&words);
  if (!strcmp(key, "name")) p->name = words;
  NUMBER(api_version) NUMBER(vendor) NUMBER(device) NUMBER(driver_id) NUMBER(type) NUMBER(imports)
  NUMBER(buffer_types) NUMBER(image_types) NUMBER(import_types)
  NUMBER(buffer_alignment) NUMBER(image_alignment) NUMBER(reorders)
  else if (!strcmp(key, "extension")) p->extensions[p->extension_count++] = words;
  else if (!strcmp(key, "feature")) p->features[p->feature_count++] = words;
  else if (!strcmp(key, "family")) p->families[p->family_count++] = number(&words);
  else if (!strcmp(key, "heap")) {
    VkMemoryHeap* heap = &memory->memoryHeaps[memory->memoryHeapCount++];
    heap->size = number(&words);
    heap->flags = number(&words);
  } else if (!strcmp(key, "memory_type")) {
    VkMemoryType* type = &memory->memoryTypes[memory->memoryTypeCount++];
    type->heapIndex = number(&words);
    type->propertyFlags = number(&words);
  } else if (!strcmp(key, "format")) {
    p->formats[p->format_count].format = number(&words);
    p->formats[p->format_count].optimal = number(&words);
    p->formats[p->format_count++].buffer = number(&words);
  } else { /* a limit */
    struct limit* limit = &p->limits[p->limit_count++];
    limit->name = key;
    while (*words && limit->count < 3) limit->values[limit->count++] = number(&words);
  }
}

static void read_once(void) {
  const char* path = getenv("VKRT_HOSTILE_PROFILE");
  FILE* file = path ? fopen(path, "r") : NULL;
  if (!file) {
    fprintf(stderr, "hostile: VKRT_HOSTILE_PROFILE names no file\n");
    abort();
  }
  size_t size = fread(profile.text, 1, sizeof profile.text - 1, file);
  fclose(file);
  profile.text[size] = 0;
  profile.buffer_types = profile.image_types = profile.import_types = ~0u;
  for (char* start = profile.text; *start;) {
    char* end = strchr(start, '\n');
    char* space = strchr(start, ' ');
    if (!end || !space || space > end) {
      fprintf(stderr, "hostile: %s is not a profile\n", path);
      abort();
    }
    *end = *space = 0;
    line(start, space + 1);
    start = end + 1;
  }
}

void read_profile(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_once);
}

const struct limit* find_limit(const char* name) {
  for (int i = 0; i < profile.limit_count; i++)
    if (!strcmp(profile.limits[i].name, name)) return &profile.limits[i];
  return NULL;
}

uint64_t limit_or(const char* name, uint64_t other) {
  const struct limit* limit = find_limit(name);
  return limit ? limit->values[0] : other;
}

bool is_listed(const char* const* names, int count, const char* name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}
