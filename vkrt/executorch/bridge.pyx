"""The border to ExecuTorch's runtime: its calls become calls of Python objects, its values arrays.

The runtime calls from whatever thread, with or without the GIL: every call takes it. No exception
crosses the border: what a call raises goes to `failed`, which says which code the runtime gets.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool

import numpy as np

from vkrt.errors import FormatError, InputError, VkrtError
from vkrt.pte.dtype import SCALAR_TYPES


cdef extern from "Python.h":
    int Py_IsInitialized() nogil


cdef extern from "backend.h" namespace "vkrt_executorch" nogil:
    ctypedef uint32_t Error

    cppclass Array[T]:
        T* data
        size_t length

    cppclass PointerBuffer:
        void* data
        unsigned char kind
        size_t size
        void release()

    cppclass NamedData:
        pass

    cppclass InitContext:
        const char* method
        const NamedData* named

    cppclass CompileSpec:
        const char* key
        const void* data
        size_t nbytes

    cppclass TensorImpl:
        int32_t* sizes
        uint8_t* dim_order
        int32_t* strides
        void* data
        Py_ssize_t dim
        Py_ssize_t numel
        int8_t dtype
        uint8_t dynamism

    cppclass EValue "vkrt_executorch::Value":
        int64_t integer
        double real
        cbool truth
        TensorImpl* tensor
        uint32_t tag

    cppclass Hooks:
        Error (*init)(InitContext*, PointerBuffer*, const CompileSpec*, size_t, void**)
        Error (*execute)(void*, EValue**, size_t)
        void (*destroy)(void*)

    ctypedef Error (*RegisterBackend)(const void*)
    ctypedef void* (*FindBackend)(const char*)
    ctypedef Error (*ResizeTensor)(TensorImpl*, Array[const int32_t])

    Error register_backend "vkrt_executorch::register_backend"(
        RegisterBackend, FindBackend, const char*, const Hooks&, cbool*)
    Error fetch_constant "vkrt_executorch::fetch"(
        const NamedData*, const char*, size_t, PointerBuffer*)


# The runtime's kinds of values
NONE, TENSOR, STRING, DOUBLE, INT, BOOL = range(6)

# The name the exporter writes into programs. The runtime keeps the pointer.
cdef bytes NAME = b"VulkanBackend"

cdef ResizeTensor RESIZE = NULL
cdef object OPEN = None
cdef object FAILED = None


cdef class Buffer:
    """Bytes borrowed from the runtime, read-only; `close()` gives them back."""

    cdef PointerBuffer own
    cdef PointerBuffer* borrowed
    cdef int exports

    def __cinit__(self):
        self.borrowed = NULL

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.borrowed == NULL:
            raise ValueError("the bytes were given back")
        PyBuffer_FillInfo(
            view, self, self.borrowed.data if self.borrowed.data != NULL else <void*>b"",
            <Py_ssize_t>self.borrowed.size, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1

    def close(self):
        """Gives the bytes back; may be called twice.

        Raises:
            BufferError: somebody looks at them.
        """
        if self.exports:
            raise BufferError("the bytes are still looked at")
        if self.borrowed != NULL:
            self.borrowed.release()
            self.borrowed = NULL

    def __dealloc__(self):
        if self.borrowed == &self.own:
            self.borrowed.release()


cdef class Constants:
    """The constants of a program by key. Usable as long as the delegate is."""

    cdef const NamedData* named

    def fetch(self, str key):
        """The bytes of a constant as a `Buffer`, to be closed.

        Raises:
            FormatError: the runtime has none under this key.
        """
        cdef Buffer found = Buffer()
        cdef bytes name = key.encode()
        cdef Error code = 0
        if self.named == NULL:
            raise FormatError(f"expected a constant under the key {key!r}, the runtime has none "
                              "for this program; if they are in a .ptd file, pass it as data_path")
        code = fetch_constant(self.named, name, len(name), &found.own)
        if code:
            raise FormatError(f"the runtime has no constant under the key {key!r} (its error "
                              f"{code:#x}); if it is in a .ptd file, pass that as data_path")
        found.borrowed = &found.own
        if found.own.kind:
            raise FormatError(f"the constant under the key {key!r} is not in the host's memory")
        return found


cdef class Memory:
    """The memory of a tensor, for numpy."""

    cdef void* data
    cdef Py_ssize_t nbytes

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.nbytes, 0, flags)


cdef class Value:
    """An argument of a delegate. Usable during the call only."""

    cdef EValue* value

    @property
    def kind(self):
        """`TENSOR`, `INT`, .."""
        return self.value.tag

    @property
    def number(self):
        """The number it holds; None where it is none."""
        if self.value.tag == INT:
            return self.value.integer
        if self.value.tag == BOOL:
            return self.value.truth
        if self.value.tag == DOUBLE:
            return self.value.real
        return None

    def set_number(self, number):
        """Makes it hold a number of the kind it has."""
        if self.value.tag == INT:
            self.value.integer = int(number)
        elif self.value.tag == BOOL:
            self.value.truth = bool(number)
        elif self.value.tag == DOUBLE:
            self.value.real = float(number)
        else:
            raise InputError(f"a value of the runtime's kind {self.kind} cannot take a number")

    cdef TensorImpl* tensor(self) except NULL:
        if self.value.tag != TENSOR or self.value.tensor == NULL:
            raise InputError(f"expected a tensor, got a value of the runtime's kind {self.kind}")
        return self.value.tensor

    @property
    def sizes(self):
        """Of the tensor, now."""
        cdef TensorImpl* tensor = self.tensor()
        return tuple([tensor.sizes[i] for i in range(tensor.dim)])

    @property
    def dtype(self):
        """The name of the tensor's dtype."""
        number = self.tensor().dtype
        if number not in SCALAR_TYPES:
            raise InputError(f"a tensor of PyTorch's dtype number {number}, which is not known")
        return SCALAR_TYPES[number]

    def array(self):
        """The tensor's memory as an array of its sizes and strides."""
        cdef TensorImpl* tensor = self.tensor()
        cdef Memory memory = Memory()
        dtype = np.dtype(self.dtype)
        if tensor.data == NULL and tensor.numel:
            raise InputError(f"a tensor {dtype}{list(self.sizes)} without memory: the program "
                             "leaves it to the caller to give it some")
        memory.data = tensor.data if tensor.data != NULL else <void*>b""
        memory.nbytes = tensor.numel * dtype.itemsize
        # Strides count elements. Those of dimensions of size 1 mean nothing.
        strides = [tensor.strides[i] * dtype.itemsize for i in range(tensor.dim)]
        return np.ndarray(self.sizes, dtype, memory, 0, strides)

    def resize(self, sizes):
        """Gives the tensor other sizes of the same rank.

        Raises:
            InputError: the runtime refuses: the tensor is static, or has no room for them.
        """
        cdef int32_t[16] wanted
        cdef Array[const int32_t] given
        cdef TensorImpl* tensor = self.tensor()
        if len(sizes) != tensor.dim or tensor.dim > 16:
            raise InputError(f"a tensor of rank {tensor.dim} cannot take the sizes {list(sizes)}")
        for i, size in enumerate(sizes):
            wanted[i] = size
        given.data, given.length = wanted, tensor.dim
        code = RESIZE(tensor, given)
        if code:
            raise InputError(f"the runtime cannot give a tensor {list(self.sizes)} the sizes "
                             f"{list(sizes)} (its error {code:#x})")


cdef Error _failed(object error) noexcept:
    """The code for an exception; it is kept for whoever asks."""
    try:
        return FAILED(error)
    except BaseException:
        return 1  # Error::Internal


cdef Error _init(InitContext* context, PointerBuffer* processed, const CompileSpec* specs,
                 size_t count, void** handle) noexcept with gil:
    cdef Buffer blob
    cdef Constants constants
    try:
        blob, constants = Buffer(), Constants()
        blob.borrowed, constants.named = processed, context.named
        method = context.method.decode() if context.method != NULL else ""
        options = {specs[i].key.decode(): (<const char*>specs[i].data)[:specs[i].nbytes]
                   for i in range(count)}
        delegate = OPEN(method, blob, options, constants.fetch)
        Py_INCREF(delegate)
        handle[0] = <void*>delegate
        return 0
    except BaseException as error:
        return _failed(error)


cdef Error _execute(void* handle, EValue** values, size_t count) noexcept with gil:
    cdef Value value
    cdef size_t i
    try:
        delegate = <object><PyObject*>handle
        arguments = []
        for i in range(count):
            value = Value()
            value.value = values[i]
            arguments.append(value)
        delegate.execute(arguments)
        return 0
    except BaseException as error:
        return _failed(error)


cdef void _destroy_now(void* handle) noexcept with gil:
    delegate = <object><PyObject*>handle
    try:
        delegate.close()
    except BaseException as error:
        _failed(error)
    Py_DECREF(delegate)


cdef void _destroy(void* handle) noexcept nogil:
    # What the runtime destroys after the end of Python was closed by then.
    if handle != NULL and Py_IsInitialized():
        _destroy_now(handle)


def connect(size_t register_address, size_t find_address, size_t resize_address, open_delegate,
            failed):
    """Registers the backend with a runtime, or changes what the one that is registered does.

    Args:
        register_address, find_address, resize_address: of the runtime's functions.
        open_delegate: called with the method's name, the delegate's blob (a `Buffer`), its compile
            options as bytes by name, and a function that fetches a constant by its key. Returns an
            object with `execute(values)` and `close()`.
        failed: called with what a call has raised; returns the runtime's code for it.

    Raises:
        VkrtError: the runtime has another backend of this name, or no room for one more.
    """
    global RESIZE, OPEN, FAILED
    cdef Hooks hooks
    cdef cbool taken = False
    hooks.init, hooks.execute, hooks.destroy = _init, _execute, _destroy
    code = register_backend(<RegisterBackend>register_address, <FindBackend>find_address,
                            <const char*>NAME, hooks, &taken)
    if taken:
        raise VkrtError("ExecuTorch's runtime has a backend 'VulkanBackend' already, which stays "
                        "as it is. It came with this build of the runtime; vkrt needs one "
                        "without it")
    if code:
        raise VkrtError(f"ExecuTorch's runtime refuses another backend (its error {code:#x}); it "
                        "has room for 16")
    RESIZE, OPEN, FAILED = <ResizeTensor>resize_address, open_delegate, failed
