"""The bytes of a program: a read-only mapping of its file, or a buffer of the caller's.

Nothing is read until it is touched. The core has what is open (`vkrt.core.file`).
"""

import os

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport errno

from vkrt.errors import CancelledError, ClosedError, FormatError, InputError

from vkrt.core cimport file as core
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY,
    VKRT_ERROR_SYSTEM, VKRT_OK, Error,
)

# What the system reads ahead where nobody has changed it.
MIN_AHEAD = core.MIN_AHEAD


def ahead_step_of(device):
    """Bytes that the system reads at least when it is asked to read ahead of a file.

    Args:
        device: number of the file's file system, as in `os.stat`.
    """
    return core.ahead_step_of(os.major(device), os.minor(device))


cdef object exception_of(int status, const Error* error, int number, str name):
    """What to raise for a status of the core.

    Args:
        number: the errno of a failure of the system.
        name: of the file that it is about, which its text ends with.
    """
    text = error.text.decode(errors="replace")
    if status == VKRT_ERROR_SYSTEM:
        return OSError(number, text.removesuffix(f": {name}"), name)
    kinds = {VKRT_ERROR_CANCELLED: CancelledError, VKRT_ERROR_FORMAT: FormatError,
             VKRT_ERROR_INPUT: InputError, VKRT_ERROR_MEMORY: MemoryError}
    return kinds[status](text)


# While there is an owner there is its buffer to be released.
@cython.no_gc_clear
cdef class Source:
    """Read-only bytes with the buffer protocol: `memoryview(source)` copies nothing.

    Made by `Source.open(path)`, `Source.open_part(fd, ..)` or `Source.wrap(buffer)`. `close()` may
    be called while views exist: the mapping and the file then go with the last of them.

    Attributes:
        name: path as it was given, or what the caller calls the buffer.
        nbytes: length; a file's when it was opened.
        mtime_ns, inode: of the file when it was opened; 0 for a buffer.
        is_file: whether the bytes are a file's, not a buffer's.
    """

    def __cinit__(self):
        self.file.fd = -1

    @staticmethod
    def open(path):
        """Opens and maps the file.

        Raises:
            OSError: it cannot be opened or mapped.
        """
        cdef Source self = Source.__new__(Source)
        cdef Error error
        cdef int status
        coded = os.fsencode(path)
        cdef const char* chars = coded
        if b"\0" in coded:
            raise ValueError("embedded null byte")
        self.name = os.fsdecode(coded)
        with nogil:
            status = core.open_file(chars, &self.file, &error)
        self._check(status, &error)
        self.is_file = True
        return self

    @staticmethod
    def open_part(int fd, size_t offset, size_t nbytes, str name=None):
        """Maps a part of an open file. The descriptor stays the caller's: this has its own.

        Args:
            fd: of the file.
            offset: of the part's first byte in the file.
            nbytes: of the part; 0 for everything up to the file's end.

        Raises:
            OSError: it is no open file, or cannot be mapped.
            FormatError: the file ends before the part does.
        """
        cdef Source self = Source.__new__(Source)
        cdef Error error
        self.name = f"<descriptor {fd}>" if name is None else name
        self._check(core.open_file_part(fd, offset, nbytes, os.fsencode(self.name), &self.file,
                                        &error), &error)
        self.is_file = True
        return self

    @staticmethod
    def wrap(buffer, str name="<memory>"):
        """Uses the bytes of an object with the buffer protocol, which it keeps alive."""
        cdef Source self = Source.__new__(Source)
        cdef Error error
        PyObject_GetBuffer(buffer, &self.held, PyBUF_SIMPLE)
        self.owner = buffer
        self.name = name
        self._check(core.use_memory(<const char*>self.held.buf, self.held.len, os.fsencode(name),
                                    &self.file, &error), &error)
        return self

    @property
    def nbytes(self):
        return self.file.nbytes

    @property
    def mtime_ns(self):
        return self.file.status.mtime_ns

    @property
    def inode(self):
        return self.file.status.inode

    @property
    def address(self):
        """Of the first byte."""
        return <size_t>self.file.data

    @property
    def identity(self):
        """Which bytes these are, without a look at them: (filesystem, inode, first byte, number of
        bytes, bytes of the file, its times of change in ns: of the content, then of anything);
        None of what is in memory."""
        if not self.is_file:
            return None
        status = &self.file.status
        return (status.device, status.inode, self.file.start, self.file.nbytes, status.nbytes,
                status.mtime_ns, status.ctime_ns)

    def check_unchanged(self):
        """Makes sure that the file still is what it was when it was opened.

        A file whose name is gone, or is not known, passes: its bytes are still there.

        Raises:
            FormatError: it was written to, cut, or another file has its name now.
            ValueError: the source is closed.
        """
        cdef Error error
        if not self.is_file:
            return
        self._check_open()
        self._check(core.check_unchanged(&self.file, &error), &error)

    cdef int _check_open(self) except -1:
        if self.closed:
            raise ClosedError(f"{self.name} is closed; load the program again")
        return 0

    cdef int _check(self, int status, const Error* error) except -1:
        """Raises what has failed in the core."""
        cdef int number = errno
        if status != VKRT_OK:
            raise exception_of(status, error, number, self.name)
        return 0

    def release(self, size_t offset, size_t nbytes):
        """Gives back the whole pages inside a range; touching them again reads the file again."""
        core.release_pages(&self.file, offset, nbytes)

    def prefetch(self, size_t offset, size_t nbytes):
        """Asks the system to read the pages of a range ahead of their use."""
        core.prefetch_pages(&self.file, offset, nbytes)

    def resident(self, size_t offset, size_t nbytes):
        """One byte for every page that the range touches: 1 where it is in the system's cache.

        Some systems answer 1 for every page of a file that is not the caller's.

        Raises:
            OSError: the system does not tell.
        """
        cdef int number
        self._check_open()
        result = PyBytes_FromStringAndSize(NULL, core.count_pages(&self.file, offset, nbytes))
        number = core.resident_pages(&self.file, offset, nbytes,
                                     <unsigned char*>PyBytes_AS_STRING(result))
        if number:
            raise OSError(number, os.strerror(number), self.name)
        return result

    def drop_cache(self, size_t offset, size_t nbytes):
        """Takes the whole pages inside the range out of the system's cache.

        Pages that a process has mapped stay; this process's own are given back before.
        """
        self._check_open()
        core.drop_cached_pages(&self.file, offset, nbytes)

    def __getbuffer__(self, Py_buffer* view, int flags):
        self._check_open()
        PyBuffer_FillInfo(view, self,
                          <void*>self.file.data if self.file.data != NULL else <void*>b"",
                          self.file.nbytes, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.closed and self.exports == 0:
            self.unmap()

    cdef void unmap(self) noexcept:
        core.close_file(&self.file)
        if self.owner is not None:
            PyBuffer_Release(&self.held)
            self.owner = None

    def close(self):
        """Gives the mapping and the file back as soon as no view of it is left."""
        if not self.closed:
            self.closed = True
            if self.exports == 0:
                self.unmap()

    def __dealloc__(self):
        self.unmap()
