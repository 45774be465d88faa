# cython: language_level=3
"""The bytes of a program: a read-only mapping of its file, or a buffer of the caller's.

Nothing is read until it is touched. While weights are packed in the order of the file, pages ahead
of the cursor are asked for and pages behind it given back, so that the process never holds more
than a window of the file.
"""

import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport errno
from posix.mman cimport (
    MADV_DONTNEED,
    MADV_WILLNEED,
    MAP_FAILED,
    MAP_PRIVATE,
    PROT_READ,
    madvise,
    mmap,
    munmap,
)

cdef size_t PAGE = os.sysconf("SC_PAGESIZE")


cdef class Source:
    """Read-only bytes with the buffer protocol: `memoryview(source)` copies nothing.

    Made by `Source.open(path)` or `Source.wrap(buffer)`. `close()` may be called while views
    exist: the mapping then goes with the last of them.
    """

    def __cinit__(self):
        self.data = NULL
        self.nbytes = 0
        self.mapped = False
        self.closed = False
        self.exports = 0
        self.owner = None

    @staticmethod
    def open(path):
        """Maps the file.

        Raises:
            OSError: it cannot be opened or mapped.
        """
        cdef Source self = Source.__new__(Source)
        cdef void* address
        self.name = os.fspath(path) if not isinstance(path, bytes) else os.fsdecode(path)
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            self.nbytes = os.fstat(fd).st_size
            if self.nbytes:
                address = mmap(NULL, self.nbytes, PROT_READ, MAP_PRIVATE, fd, 0)
                if address == MAP_FAILED:
                    raise OSError(errno, f"cannot map {self.name}: {os.strerror(errno)}", self.name)
                self.data = <const unsigned char*>address
                self.mapped = True
        finally:
            os.close(fd)
        return self

    @staticmethod
    def wrap(buffer, str name="<memory>"):
        """Uses the bytes of an object with the buffer protocol, which it keeps alive."""
        cdef Source self = Source.__new__(Source)
        PyObject_GetBuffer(buffer, &self.held, PyBUF_SIMPLE)
        self.owner = buffer
        self.name = name
        self.data = <const unsigned char*>self.held.buf
        self.nbytes = self.held.len
        return self

    @property
    def is_mapped(self):
        """Whether the bytes are a mapping of a file."""
        return bool(self.mapped)

    @property
    def address(self):
        """Of the first byte."""
        return <size_t>self.data

    cdef void release_pages(self, size_t offset, size_t nbytes) noexcept nogil:
        """Gives back the whole pages inside the range; touching them again reads the file again."""
        cdef size_t start, end
        if not self.mapped:
            return
        start = (offset + PAGE - 1) // PAGE * PAGE
        end = (offset + nbytes) // PAGE * PAGE
        if end > start:
            madvise(<void*>(self.data + start), end - start, MADV_DONTNEED)

    cdef void want_pages(self, size_t offset, size_t nbytes) noexcept nogil:
        """Asks the system to read the range ahead of its use."""
        cdef size_t start
        if not self.mapped or offset >= self.nbytes:
            return
        start = offset // PAGE * PAGE
        nbytes = min(offset + nbytes, self.nbytes) - start
        madvise(<void*>(self.data + start), nbytes, MADV_WILLNEED)

    def release(self, size_t offset, size_t nbytes):
        """Gives back the pages of a range of a mapped file."""
        self.release_pages(offset, min(nbytes, self.nbytes - min(offset, self.nbytes)))

    def prefetch(self, size_t offset, size_t nbytes):
        """Asks for the pages of a range of a mapped file to be read."""
        self.want_pages(offset, nbytes)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.closed:
            raise ValueError(f"{self.name} is closed")
        PyBuffer_FillInfo(view, self, <void*>self.data if self.data != NULL else <void*>b"",
                          self.nbytes, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.closed and self.exports == 0:
            self.unmap()

    cdef void unmap(self) noexcept:
        if self.mapped:
            munmap(<void*>self.data, self.nbytes)
            self.mapped = False
        elif self.owner is not None:
            PyBuffer_Release(&self.held)
            self.owner = None
        self.data = NULL

    def close(self):
        """Gives the mapping back as soon as no view of it is left."""
        if not self.closed:
            self.closed = True
            if self.exports == 0:
                self.unmap()

    def __dealloc__(self):
        self.unmap()
