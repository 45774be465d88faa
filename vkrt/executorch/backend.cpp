#include "backend.h"

#include <new>

namespace vkrt_executorch {

Interface::~Interface() = default;
NamedData::~NamedData() = default;

namespace {

class Backend final : public Interface {
 public:
  Hooks hooks{};

  // Where there is no driver, `init` says so in words.
  bool is_available() const override { return true; }

  Result<void *> init(InitContext &context, PointerBuffer *processed,
                      Array<const CompileSpec> specs) const override {
    void *handle = nullptr;
    const Error error = hooks.init(&context, processed, specs.data, specs.length, &handle);
    return error ? Result<void *>(error) : Result<void *>(handle);
  }

  Error execute(void *, void *handle, Array<Value *> values) const override {
    return hooks.execute(handle, values.data, values.length);
  }

  Error set_option(void *, const void *) override { return 0; }
  Error get_option(void *, void *) override { return 0; }

  void destroy(void *handle) const override { hooks.destroy(handle); }
};

// The runtime keeps the pointer to the end of the process, so nothing ever destroys it.
alignas(Backend) unsigned char place[sizeof(Backend)];
Backend *backend = nullptr;

}  // namespace

Error register_backend(RegisterBackend add, FindBackend find, const char *name, const Hooks &hooks,
                       bool *taken) {
  if (backend == nullptr) backend = new (place) Backend;
  backend->hooks = hooks;
  const Interface *there = find(name);
  *taken = there != nullptr && there != backend;
  return there != nullptr ? 0 : add(Registration{name, backend});
}

Error fetch(const NamedData *named, const char *key, std::size_t length, PointerBuffer *found) {
  Result<PointerBuffer> result = named->get_data(std::string_view(key, length));
  if (!result.has_value) return result.error;
  *found = result.value;
  return 0;
}

}  // namespace vkrt_executorch
