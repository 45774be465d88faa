// The backend as Cython sees it: three functions to supply, and what they may call.
#pragma once

#include "abi.h"

namespace vkrt_executorch {

struct Hooks {
  Error (*init)(InitContext *context, PointerBuffer *processed, const CompileSpec *specs,
                std::size_t count, void **handle);
  Error (*execute)(void *handle, Value **values, std::size_t count);
  void (*destroy)(void *handle);
};

// Registers the one backend of this process under a name, which has to stay where it is.
// 0, or the runtime's code; `taken` is set if another backend has the name already, and nothing is
// registered then.
Error register_backend(RegisterBackend add, FindBackend find, const char *name, const Hooks &hooks,
                       bool *taken);

// The bytes of a constant, which the caller releases; a code other than 0 if there are none.
Error fetch(const NamedData *named, const char *key, std::size_t length, PointerBuffer *found);

}  // namespace vkrt_executorch
