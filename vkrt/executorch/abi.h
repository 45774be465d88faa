// The types of ExecuTorch's runtime that cross the border to a backend, as they lie in memory.
//
// Written down from what the runtime's own headers say, so that neither they nor its libraries are
// needed to build. The layouts are those of libstdc++ and the Itanium C++ ABI (Linux on x86-64 and
// aarch64), and are the same in ExecuTorch 1.2 to 1.5. A class that returns a `Result` from a
// virtual function must have the destructor that the real one has: it decides how the value is
// returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vkrt_executorch {

using Error = std::uint32_t;

template <typename T>
struct Array {  // ArrayRef and Span
  T *data;
  std::size_t length;
};

struct PointerBuffer {  // FreeableBuffer
  using Free = void (*)(void *context, void *data, std::size_t size);

  void *data;
  Free free;           // may be null
  unsigned char kind;  // 0: `data` is a pointer, the only kind on machines with one address space
  void *context;
  std::size_t size;

  void release() {
    if (kind == 0 && data != nullptr && free != nullptr) free(context, data, size);
    data = nullptr;
    size = 0;
  }
};
static_assert(sizeof(PointerBuffer) == 40 && offsetof(PointerBuffer, context) == 24);

template <typename T>
struct Result {
  union {
    T value;
    Error error;
  };
  bool has_value;

  explicit Result(Error code) : error(code), has_value(false) {}
  explicit Result(const T &given) : value(given), has_value(true) {}
  Result(const Result &) = delete;
  Result &operator=(const Result &) = delete;
  ~Result() {}  // whoever gets a buffer releases it by hand
};
static_assert(sizeof(Result<void *>) == 16 && sizeof(Result<PointerBuffer>) == 48);

struct TensorLayout;

struct NamedData {  // NamedDataMap
  virtual ~NamedData();
  virtual Result<void *> get_tensor_layout(std::string_view key) const = 0;  // not called here
  virtual Result<PointerBuffer> get_data(std::string_view key) const = 0;
};

struct InitContext {  // BackendInitContext, as far as it is read
  void *allocator;
  void *tracer;
  const char *method;
  const NamedData *named;
};

struct CompileSpec {
  const char *key;
  const void *data;
  std::size_t nbytes;
};

struct TensorImpl {
  std::int32_t *sizes;
  std::uint8_t *dim_order;
  std::int32_t *strides;
  void *data;
  std::ptrdiff_t dim;
  std::ptrdiff_t numel;
  std::size_t numel_bound;
  std::int8_t dtype;
  std::uint8_t dynamism;
};
static_assert(offsetof(TensorImpl, dtype) == 56);

struct Value {  // EValue
  union {
    std::int64_t integer;
    double real;
    bool truth;
    TensorImpl *tensor;
  };
  std::uint32_t tag;
};
static_assert(sizeof(Value) == 16);

// BackendInterface: the order of these functions is its table of virtual functions.
struct Interface {
  virtual ~Interface();
  virtual bool is_available() const = 0;
  virtual Result<void *> init(InitContext &context, PointerBuffer *processed,
                              Array<const CompileSpec> specs) const = 0;
  virtual Error execute(void *context, void *handle, Array<Value *> values) const = 0;
  virtual Error set_option(void *context, const void *options) = 0;
  virtual Error get_option(void *context, void *options) = 0;
  virtual void destroy(void *handle) const = 0;
};

struct Registration {  // Backend
  const char *name;
  Interface *backend;
};

using RegisterBackend = Error (*)(const Registration &);
using FindBackend = Interface *(*)(const char *name);
using ResizeTensor = Error (*)(TensorImpl *tensor, Array<const std::int32_t> sizes);

}  // namespace vkrt_executorch
