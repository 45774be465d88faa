# cython: language_level=3
"""The bytes of a program: a read-only mapping of its file, or a buffer of the caller's.

Nothing is read until it is touched. The file stays open as long as the mapping, for those who
read it without touching the mapping (`vkrt.memory.reader`), and its size, time and inode at the
start are remembered: weights that are read again later have to come from the same bytes.
"""

import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport errno
from posix.mman cimport (
    MADV_DONTNEED,
    MAP_FAILED,
    MAP_PRIVATE,
    PROT_READ,
    madvise,
    mmap,
    munmap,
)
from posix.unistd cimport close

from vkrt.errors import ClosedError, FormatError

from vkrt.memory.system cimport forget, mincore, want_mapped

cdef size_t PAGE = os.sysconf("SC_PAGESIZE")
# Linux's own setting where nobody has changed it.
MIN_AHEAD = 128 << 10


def ahead_step_of(device):
    """Bytes that the system reads at least when it is asked to read ahead of a file.

    Args:
        device: number of the file's file system, as in `os.stat`.
    """
    try:
        with open(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb",
                  encoding="ascii") as setting:
            return max(int(setting.read()) << 10, MIN_AHEAD)
    except (OSError, ValueError):
        return MIN_AHEAD


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
        self.data = NULL
        self.nbytes = 0
        self.fd = -1
        self.mapped = False
        self.closed = False
        self.exports = 0
        self.owner = None

    @staticmethod
    def open(path):
        """Opens and maps the file.

        Raises:
            OSError: it cannot be opened or mapped.
        """
        cdef Source self = Source.__new__(Source)
        self.name = os.fspath(path) if not isinstance(path, bytes) else os.fsdecode(path)
        self.path = os.path.abspath(self.name)
        self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._map(os.access(path, os.W_OK), 0, 0)
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
        self.name = f"<descriptor {fd}>" if name is None else name
        self.fd = os.dup(fd)
        self._map(False, offset, nbytes)
        return self

    cdef int _map(self, bint is_mine, size_t offset, size_t nbytes) except -1:
        """Maps the part of the open file that begins at `offset`."""
        cdef void* address
        status = os.fstat(self.fd)
        self.is_file = True
        self.file_nbytes = status.st_size
        if offset > self.file_nbytes or nbytes > self.file_nbytes - offset:
            raise FormatError(f"{self.name} has {self.file_nbytes} bytes, and {nbytes} from byte "
                              f"{offset} on are wanted")
        self.start = offset
        self.skew = offset % PAGE
        self.nbytes = nbytes or self.file_nbytes - offset
        self.mtime_ns = status.st_mtime_ns
        self.ctime_ns = status.st_ctime_ns
        self.inode = status.st_ino
        self.filesystem = status.st_dev
        self.ahead_step = ahead_step_of(status.st_dev)
        # Linux pretends for files of others that it has every page of them in memory.
        self.tells_residence = is_mine or status.st_uid == os.geteuid()
        if self.nbytes:
            address = mmap(NULL, self.skew + self.nbytes, PROT_READ, MAP_PRIVATE, self.fd,
                           offset - self.skew)
            if address == MAP_FAILED:
                raise OSError(errno, f"cannot map {self.name}: {os.strerror(errno)}", self.name)
            self.data = <const unsigned char*>address + self.skew
            self.mapped = True
        return 0

    cdef Py_ssize_t page_of(self, size_t offset) noexcept nogil:
        """Where the page begins that a byte is in; less than 0 where the part begins within it."""
        return <Py_ssize_t>((offset + self.skew) // PAGE * PAGE) - <Py_ssize_t>self.skew

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
    def address(self):
        """Of the first byte."""
        return <size_t>self.data

    @property
    def identity(self):
        """Which bytes these are, without a look at them: (filesystem, inode, first byte, number of
        bytes, bytes of the file, its times of change in ns: of the content, then of anything);
        None of what is in memory."""
        if not self.is_file:
            return None
        return (self.filesystem, self.inode, self.start, self.nbytes, self.file_nbytes,
                self.mtime_ns, self.ctime_ns)

    def check_unchanged(self):
        """Makes sure that the file still is what it was when it was opened.

        A file whose name is gone, or is not known, passes: its bytes are still there.

        Raises:
            FormatError: it was written to, cut, or another file has its name now.
            ValueError: the source is closed.
        """
        if not self.is_file:
            return
        self._check_open()
        status = os.fstat(self.fd)
        if status.st_size != self.file_nbytes:
            raise FormatError(f"{self.name} has {status.st_size} bytes and had {self.file_nbytes} "
                              "when it was opened; load the program again")
        if status.st_mtime_ns != self.mtime_ns:
            raise FormatError(f"{self.name} was written to after it was opened; load the program "
                              "again")
        if self.path is None:
            return
        try:
            status = os.stat(self.path)
        except OSError:
            return
        if (status.st_ino, status.st_dev) != (self.inode, self.filesystem):
            raise FormatError(f"{self.name} is another file than when it was opened; load the "
                              "program again")

    cdef int _check_open(self) except -1:
        if self.closed:
            raise ClosedError(f"{self.name} is closed; load the program again")
        return 0

    cdef int copy_to(self, size_t offset, size_t nbytes, char* place) except -1:
        """Brings bytes that are fetched, see `vkrt.memory.fetched`."""
        raise NotImplementedError(f"{self.name} is not fetched")

    def release(self, size_t offset, size_t nbytes):
        """Gives back the whole pages inside a range; touching them again reads the file again."""
        cdef size_t last = offset + min(nbytes, self.nbytes - min(offset, self.nbytes))
        cdef Py_ssize_t start = self.page_of(offset + PAGE - 1)
        cdef Py_ssize_t end = self.page_of(last)
        if self.mapped and end > start:
            madvise(<void*>(self.data + start), end - start, MADV_DONTNEED)

    def prefetch(self, size_t offset, size_t nbytes):
        """Asks the system to read the pages of a range ahead of their use."""
        cdef Py_ssize_t start = self.page_of(offset)
        if self.mapped and offset < self.nbytes:
            want_mapped(<const char*>self.data + start, min(offset + nbytes, self.nbytes) - start,
                        self.ahead_step)

    def resident(self, size_t offset, size_t nbytes):
        """One byte for every page that the range touches: 1 where it is in the system's cache.

        Some systems answer 1 for every page of a file that is not the caller's.

        Raises:
            OSError: the system does not tell.
        """
        cdef Py_ssize_t start = self.page_of(offset)
        cdef size_t end = min(offset + nbytes, self.nbytes)
        cdef size_t pages, i
        cdef int error
        cdef unsigned char* bytes_of
        self._check_open()
        if offset >= end:
            return b""
        pages = (end - start + PAGE - 1) // PAGE
        if not self.mapped:
            return b"\1" * pages
        result = PyBytes_FromStringAndSize(NULL, pages)
        bytes_of = <unsigned char*>PyBytes_AS_STRING(result)
        error = mincore(self.data + start, end - start, bytes_of)
        if error:
            raise OSError(error, os.strerror(error), self.name)
        for i in range(pages):
            bytes_of[i] &= 1
        return result

    def drop_cache(self, size_t offset, size_t nbytes):
        """Takes the whole pages inside the range out of the system's cache.

        Pages that a process has mapped stay; this process's own are given back before.
        """
        self._check_open()
        if self.is_file:
            self.release(offset, nbytes)
            forget(self.fd, self.start + offset, nbytes)

    def __getbuffer__(self, Py_buffer* view, int flags):
        self._check_open()
        PyBuffer_FillInfo(view, self, <void*>self.data if self.data != NULL else <void*>b"",
                          self.nbytes, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.closed and self.exports == 0:
            self.unmap()

    cdef void unmap(self) noexcept:
        if self.mapped:
            munmap(<void*>(self.data - self.skew), self.skew + self.nbytes)
            self.mapped = False
        elif self.owner is not None:
            PyBuffer_Release(&self.held)
            self.owner = None
        self.data = NULL
        if self.fd >= 0:
            close(self.fd)
            self.fd = -1

    def close(self):
        """Gives the mapping and the file back as soon as no view of it is left."""
        if not self.closed:
            self.closed = True
            if self.exports == 0:
                self.unmap()

    def __dealloc__(self):
        self.unmap()
