/* What a module of SPIR-V does with its bindings, and which conversions it leaves to the driver. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

/* Numbers of the specification of SPIR-V, and of its instructions for GLSL */
enum { EXT_INST = 12, TYPE_IMAGE = 25, TYPE_SAMPLED_IMAGE = 27, TYPE_POINTER = 32, VARIABLE = 59,
       DECORATE = 71, MEMBER_DECORATE = 72 };
enum { NON_WRITABLE = 24, NON_READABLE = 25, BINDING = 33, PACK_HALF_2X16 = 58 };

/* What is known of an id */
struct id {
  uint32_t kind, type; /* of variables and pointers: what they lead to */
  int binding;
  bool is_bound, no_writes, no_reads, is_sampled;
};

struct interface interface_of(const uint32_t* code, size_t bytes) {
  struct interface found = {0};
  size_t words = bytes / 4, bound = words > 5 ? code[3] : 0;
  struct id* ids = calloc(bound + 1, sizeof *ids);
  for (size_t at = 5; at < words && code[at] >> 16; at += code[at] >> 16) {
    const uint32_t* word = code + at;
    switch (word[0] & 0xFFFF) {
      case DECORATE:
        if (word[2] == BINDING) ids[word[1]].is_bound = true, ids[word[1]].binding = word[3];
        if (word[2] == NON_WRITABLE) ids[word[1]].no_writes = true;
        if (word[2] == NON_READABLE) ids[word[1]].no_reads = true;
        break;
      case MEMBER_DECORATE: /* blocks of buffers have one member here */
        if (word[3] == NON_WRITABLE) ids[word[1]].no_writes = true;
        if (word[3] == NON_READABLE) ids[word[1]].no_reads = true;
        break;
      case TYPE_IMAGE:
        ids[word[1]].is_sampled = word[7] == 1;
        break;
      case TYPE_SAMPLED_IMAGE:
        ids[word[1]].is_sampled = true;
        break;
      case TYPE_POINTER:
        ids[word[1]].type = word[3];
        break;
      case VARIABLE:
        ids[word[2]].kind = VARIABLE, ids[word[2]].type = ids[word[1]].type;
        break;
      case EXT_INST:
        if (word[4] == PACK_HALF_2X16) found.packs_halves = true;
        break;
      default:
        break;
    }
  }
  for (size_t i = 0; i < bound; i++) {
    if (ids[i].kind != VARIABLE || !ids[i].is_bound || ids[i].binding >= MAX_BINDINGS) continue;
    const struct id* type = &ids[ids[i].type];
    uint32_t bit = 1u << ids[i].binding;
    if (!ids[i].no_writes && !type->no_writes && !type->is_sampled) found.writes |= bit;
    if (!ids[i].no_reads && !type->no_reads) found.reads |= bit;
  }
  free(ids);
  return found;
}
