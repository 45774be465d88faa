"""Fetched constants: a source of bytes that somebody else hands out by key.

Where vkrt is a part of another runtime, that one has the file, and gives the bytes of a constant
when it is asked for it by name. One constant is there at a time: it is fetched when its first byte
is read, and given back with its last byte or when another one is read. Weights are read in the
order of the constants, so each is fetched once.
"""

import os
import threading

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

from vkrt.errors import FormatError

from vkrt.core.error cimport Error
from vkrt.core.file cimport use_memory
from vkrt.memory.source cimport Source

# Constants have places in one range of bytes. How long a constant is is not known before it is
# fetched, so they lie far apart.
SPACE = 1 << 40
cdef size_t SHIFT = 40


cdef class FetchedSource(Source):
    """Constants by key.

    Args:
        fetch: gets the bytes of a constant: called with the key, it returns an object with the
            buffer protocol and with `close()`, which gives the bytes back. May be called from any
            thread, one at a time, as long as the source is used.
        name: what to call all of it in messages.
    """

    def __init__(self, fetch, str name):
        cdef Error error
        self.fetch = fetch
        self.name = name
        self._check(use_memory(NULL, 0, os.fsencode(name), &self.file, &error), &error)
        self.file.provide, self.file.provider = provide, <void*>self
        self.keys, self.places = [], {}
        self.number = -1
        self.lock = threading.Lock()

    def place(self, str key):
        """Where the first byte of a constant is; it has `SPACE` bytes from there on."""
        if key not in self.places:
            self.places[key] = len(self.keys)
            self.keys.append(key)
            self.file.nbytes = <size_t>len(self.keys) << SHIFT
        return self.places[key] << SHIFT

    cdef int copy_alone(self, size_t offset, size_t nbytes, char* place) except -1:
        cdef Py_ssize_t number = <Py_ssize_t>(offset >> SHIFT)
        cdef size_t start = offset - (<size_t>number << SHIFT)
        self._check_open()
        if number != self.number:
            self.bring(number)
        cdef size_t there = <size_t>self.view.len
        if start > there or nbytes > there - start:
            self.drop()
            raise FormatError(f"{self.name}: expected at least {start + nbytes} bytes under the "
                              f"key {self.keys[number]!r}, got {there}")
        memcpy(place, <char*>self.view.buf + start, nbytes)
        if start + nbytes == there:
            self.drop()
        return 0

    cdef int bring(self, Py_ssize_t number) except -1:
        self.drop()
        constant = self.fetch(self.keys[number])
        PyObject_GetBuffer(constant, &self.view, PyBUF_SIMPLE)
        self.constant, self.number = constant, number
        return 0

    cdef int drop(self) except -1:
        if self.number >= 0:
            self.number = -1
            PyBuffer_Release(&self.view)
            constant, self.constant = self.constant, None
            constant.close()
        return 0

    def __getbuffer__(self, Py_buffer* view, int flags):
        # Nothing is to be seen at once; readers hold the source by this.
        self._check_open()
        PyBuffer_FillInfo(view, self, <void*>b"", 0, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.exports == 0:
            self.drop()

    def close(self):
        """Gives back what is there; nothing can be read any more."""
        self.closed = True
        self.drop()


cdef int provide(void* fetched, size_t offset, size_t nbytes, char* place) noexcept with gil:
    """Brings bytes for the core; what goes wrong is kept for whoever hears of it there."""
    cdef FetchedSource source = <FetchedSource>fetched
    try:
        # `fetch` is Python: while it runs, another thread of the reader may come here.
        with source.lock:
            source.copy_alone(offset, nbytes, place)
        return 0
    except BaseException as failure:
        source.failure = failure
        return 1
