// A small stand-in for ExecuTorch's runtime, written from the layouts of its public headers: it
// takes a backend, and calls it with a delegate, constants and values as the real one does. Its
// classes have the real names, so that the linker gives its functions the real symbols.

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace executorch {
namespace runtime {

enum class Error : std::uint32_t { Ok = 0, Internal = 1, NotSupported = 0x10, NotFound = 0x20 };

template <typename T>
class ArrayRef {
 public:
  ArrayRef(const T *data, std::size_t length) : data_(data), length_(length) {}
  const T *data() const { return data_; }
  std::size_t size() const { return length_; }

 private:
  const T *data_;
  std::size_t length_;
};

class FreeableBuffer {
 public:
  using Free = void (*)(void *, void *, std::size_t);
  struct Near {
    const void *data;
    Free free;
  };
  struct Far {
    std::uint64_t data;
    void (*free)(void *, std::uint64_t, std::size_t);
  };

  FreeableBuffer(const void *data, std::size_t size, Free free, void *context)
      : data_(Near{data, free}), context_(context), size_(size) {}
  FreeableBuffer(FreeableBuffer &&other) noexcept
      : data_(other.data_), context_(other.context_), size_(other.size_) {
    other.data_ = Near{nullptr, nullptr};
  }
  ~FreeableBuffer() {
    Near &data = std::get<Near>(data_);
    if (data.data != nullptr && data.free != nullptr)
      data.free(context_, const_cast<void *>(data.data), size_);
    data.data = nullptr;
  }

 private:
  std::variant<Near, Far> data_;
  void *context_;
  std::size_t size_;
};

template <typename T>
class Result {
 public:
  Result(Error error) : error_(error), has_value_(false) {}
  Result(T &&value) : value_(std::move(value)), has_value_(true) {}
  Result(Result &&other) noexcept : has_value_(other.has_value_) {
    if (has_value_)
      new (&value_) T(std::move(other.value_));
    else
      error_ = other.error_;
  }
  ~Result() {
    if (has_value_) value_.~T();
  }
  bool ok() const { return has_value_; }
  T &get() { return value_; }
  Error error() const { return has_value_ ? Error::Ok : error_; }

 private:
  union {
    T value_;
    Error error_;
  };
  bool has_value_;
};

class TensorLayout {
  std::vector<int> anything_;
};

class NamedDataMap {
 public:
  virtual ~NamedDataMap() = default;
  virtual Result<const TensorLayout> get_tensor_layout(std::string_view key) const = 0;
  virtual Result<FreeableBuffer> get_data(std::string_view key) const = 0;
  virtual Error load_data_into(std::string_view key, void *to, std::size_t size) const = 0;
};

namespace etensor {
class TensorImpl {
 public:
  std::int32_t *sizes_;
  std::uint8_t *dim_order_;
  std::int32_t *strides_;
  void *data_;
  const std::ptrdiff_t dim_;
  std::ptrdiff_t numel_;
  std::size_t numel_bound_;
  const std::int8_t type_;
  const std::uint8_t shape_dynamism_;
  std::int16_t device_;
};
}  // namespace etensor

struct EValue {
  union {
    std::int64_t as_int;
    double as_double;
    bool as_bool;
    etensor::TensorImpl *as_tensor;
  };
  std::uint32_t tag;
};

struct CompileSpec {
  const char *key;
  struct {
    void *buffer;
    std::size_t nbytes;
  } value;
};

template <typename T>
struct Span {
  T *data;
  std::size_t length;
};

class BackendInitContext {
 public:
  void *runtime_allocator_ = nullptr;
  void *event_tracer_ = nullptr;
  const char *method_name_ = nullptr;
  const NamedDataMap *named_data_map_ = nullptr;
  Span<const void> runtime_specs_{nullptr, 0};
};

class BackendExecutionContext {};
class BackendOptionContext {};

class BackendInterface {
 public:
  virtual ~BackendInterface() = 0;
  virtual bool is_available() const = 0;
  virtual Result<void *> init(BackendInitContext &context, FreeableBuffer *processed,
                              ArrayRef<CompileSpec> specs) const = 0;
  virtual Error execute(BackendExecutionContext &context, void *handle,
                        Span<EValue *> values) const = 0;
  virtual Error set_option(BackendOptionContext &context, const Span<int> &options) = 0;
  virtual Error get_option(BackendOptionContext &context, Span<int> &options) = 0;
  virtual void destroy(void *handle) const = 0;
};
BackendInterface::~BackendInterface() {}

struct Backend {
  const char *name;
  BackendInterface *backend;
};

namespace {
std::vector<Backend> backends;
std::size_t room = 16;
}  // namespace

__attribute__((visibility("default"))) Error register_backend(const Backend &backend) {
  if (backends.size() >= room) return Error::Internal;
  backends.push_back(backend);
  return Error::Ok;
}

__attribute__((visibility("default"))) BackendInterface *get_backend_class(const char *name) {
  for (const Backend &known : backends)
    if (std::strcmp(known.name, name) == 0) return known.backend;
  return nullptr;
}

namespace internal {
__attribute__((visibility("default"))) Error resize_tensor_impl(etensor::TensorImpl *tensor,
                                                                ArrayRef<std::int32_t> sizes) {
  std::ptrdiff_t numel = 1;
  for (std::size_t i = 0; i < sizes.size(); i++) numel *= sizes.data()[i];
  if (tensor->shape_dynamism_ == 0 || static_cast<std::size_t>(numel) > tensor->numel_bound_)
    return Error::NotSupported;
  tensor->numel_ = numel;
  for (std::ptrdiff_t i = tensor->dim_ - 1, stride = 1; i >= 0; i--) {
    tensor->sizes_[i] = sizes.data()[i];
    tensor->strides_[i] = static_cast<std::int32_t>(stride);
    stride *= sizes.data()[i];
  }
  return Error::Ok;
}
}  // namespace internal

}  // namespace runtime
}  // namespace executorch

// What the tests call, in plain C.

using namespace executorch::runtime;

namespace {

// Counts what is lent out: at most one constant at a time, and nothing at the end.
struct Lent {
  int now = 0, most = 0, all = 0;
};
Lent lent;

void count_back(void *context, void *data, std::size_t size) {
  std::memset(data, 0xdd, size);  // whoever still reads it will notice
  delete[] static_cast<char *>(data);
  static_cast<Lent *>(context)->now--;
}

FreeableBuffer lend(const std::string &bytes, Lent *count) {
  char *copy = new char[bytes.size() + 1];
  std::memcpy(copy, bytes.data(), bytes.size());
  count->all++;
  if (++count->now > count->most) count->most = count->now;
  return FreeableBuffer(copy, bytes.size(), count_back, count);
}

class Constants final : public NamedDataMap {
 public:
  std::map<std::string, std::string, std::less<>> bytes;

  Result<const TensorLayout> get_tensor_layout(std::string_view) const override {
    return Error::NotSupported;
  }
  Result<FreeableBuffer> get_data(std::string_view key) const override {
    const auto found = bytes.find(key);
    if (found == bytes.end()) return Error::NotFound;
    return lend(found->second, &lent);
  }
  Error load_data_into(std::string_view, void *, std::size_t) const override {
    return Error::NotSupported;
  }
};

struct Loaded {
  Constants constants;
  Lent blobs;
  FreeableBuffer *blob = nullptr;
  void *handle = nullptr;
};

}  // namespace

extern "C" {
#define FAKE __attribute__((visibility("default")))

FAKE void fake_forget() { backends.clear(); }
FAKE void fake_fill(int count) {
  while (static_cast<int>(backends.size()) < count) backends.push_back({"Another", nullptr});
}
FAKE void fake_register_other() {
  static char other;
  backends.push_back({"VulkanBackend", reinterpret_cast<BackendInterface *>(&other)});
}
FAKE int fake_registered() { return static_cast<int>(backends.size()); }

FAKE Loaded *fake_new() { return new Loaded; }
FAKE void fake_constant(Loaded *loaded, const char *key, const char *data, std::size_t size) {
  loaded->constants.bytes[key] = std::string(data, size);
}

// Initializes a delegate; the backend's code. With `with_map` 0 there is no map of constants, as
// in a program without any.
FAKE std::uint32_t fake_init(Loaded *loaded, const char *blob, std::size_t size, const char *key,
                             char value, int with_map) {
  BackendInterface *backend = get_backend_class("VulkanBackend");
  if (backend == nullptr || !backend->is_available()) return 0xffff;
  loaded->blob = new FreeableBuffer(lend(std::string(blob, size), &loaded->blobs));
  CompileSpec spec{key, {&value, 1}};
  BackendInitContext context;
  context.method_name_ = "forward";
  context.named_data_map_ = with_map ? &loaded->constants : nullptr;
  Result<void *> result = backend->init(context, loaded->blob,
                                        ArrayRef<CompileSpec>(&spec, key != nullptr ? 1 : 0));
  if (result.ok()) loaded->handle = result.get();
  return static_cast<std::uint32_t>(result.error());
}

FAKE std::uint32_t fake_execute(Loaded *loaded, EValue **values, std::size_t count) {
  BackendExecutionContext context;
  return static_cast<std::uint32_t>(get_backend_class("VulkanBackend")
                                        ->execute(context, loaded->handle, {values, count}));
}

FAKE int fake_blobs_lent(Loaded *loaded) { return loaded->blobs.now; }
FAKE void fake_lent(int *now, int *most, int *all) {
  *now = lent.now;
  *most = lent.most;
  *all = lent.all;
  lent = Lent{lent.now, lent.now, 0};
}

FAKE void fake_delete(Loaded *loaded) {
  if (loaded->handle != nullptr) get_backend_class("VulkanBackend")->destroy(loaded->handle);
  delete loaded->blob;
  delete loaded;
}
}
