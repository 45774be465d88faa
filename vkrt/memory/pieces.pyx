# cython: language_level=3
# cython: cdivision=True
"""Pieces: the unit of reading. Each is fetched, and packed out of the processor's cache."""

import os

from libc.errno cimport ENOMEM
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from vkrt.errors import FormatError, InputError

from vkrt.core.packing cimport pack_parts
from vkrt.core.strided_copy cimport parts_bytes
from vkrt.memory.scratch cimport ScratchPool
from vkrt.memory.source cimport Source
from vkrt.memory.strategies cimport FAILED, TRUNCATED, File, use_strategy
from vkrt.memory.system cimport atomic_add, now

cdef enum:
    NO_SOURCE = -2  # a code of `PieceReader.check`, like TRUNCATED

# The largest piece: packed ones have to fit the cache of a core. What a mapping has in memory is
# this for each thread.
cdef size_t PIECE = 1 << 20
# Columns are cut at multiples of this, which is a whole line of the cache for every element.
cdef size_t COLUMNS = 64


cdef class PieceReader:
    """Open files, and what it takes to bring a piece of one to its place.

    Everything without the GIL may be called by several threads at once.
    """

    def __cinit__(self):
        self.files = NULL
        self.sources, self.views = [], []
        self.scratch = ScratchPool()

    cdef int open_files(self, sources, str strategy) except -1:
        """Takes the sources up; their mappings and files stay open until `close_files`."""
        cdef size_t i, count
        cdef Source source
        self.sources = list(sources)
        count = len(self.sources)
        self.files = <File*>calloc(max(count, <size_t>1), sizeof(File))
        if self.files == NULL:
            raise MemoryError()
        for i in range(count):
            source = self.sources[i]
            self.views.append(memoryview(source))
            use_strategy(&self.files[i], source, strategy)
            self.file_count += 1
        return 0

    cdef void close_files(self) noexcept:
        self.file_count = 0
        free(self.files)
        self.files = NULL

    def __dealloc__(self):
        self.close_files()

    cdef int check(self, const Job* job) noexcept nogil:
        """0, or why a job cannot be done at all."""
        if job.source >= self.file_count:
            return NO_SOURCE
        cdef File* file = &self.files[job.source]
        if job.offset > file.nbytes or job.nbytes > file.nbytes - job.offset:
            return TRUNCATED
        return 0

    cdef size_t piece_of(self, const Job* job, size_t done, Job* piece) noexcept nogil:
        """The piece of a job after `done` bytes (of a packed one: parts).

        Returns what is done after the piece; 0 if there is none.
        """
        cdef size_t count, part_bytes
        piece[0] = job[0]
        if job.copy == NULL:
            count = min(job.nbytes - done, PIECE)
            piece.offset += done
            piece.nbytes = count
            piece.target += done
            return done + count if count else 0
        count = job.parts - done
        if count == 0 or job.nbytes == 0:
            return 0
        part_bytes = job.copy.part_source * job.copy.itemsize
        if count * part_bytes > PIECE:
            count = min(count, max(PIECE // part_bytes, <size_t>1))
            if job.copy.columns and count > COLUMNS:
                count -= count % COLUMNS
        piece.offset += done * part_bytes
        piece.first += done
        piece.parts = count
        piece.nbytes = parts_bytes(job.copy, count)
        return done + count

    cdef int carry(self, const Job* piece) noexcept nogil:
        """Reads a piece and puts it in its place; an errno, TRUNCATED or 0."""
        cdef File* file = &self.files[piece.source]
        cdef bint packed = piece.copy != NULL
        cdef bint through = packed and file.in_place
        cdef char* place = piece.target
        cdef int slot = -1
        cdef int error = 0
        cdef const char* data
        cdef uint64_t start, middle
        if through:
            place = self.scratch.acquire(piece.nbytes, &slot)
            if place == NULL:
                return ENOMEM
        start = now()
        data = file.fetch(file, piece.offset, piece.nbytes, place, &error)
        if data != NULL and not packed and data != piece.target:
            memcpy(piece.target, data, piece.nbytes)
        middle = now()
        atomic_add(&self.read_time, middle - start)
        if data != NULL:
            if packed:
                pack_parts(piece.copy, data, piece.target, piece.first, piece.parts)
                atomic_add(&self.pack_time, now() - middle)
            file.behind(file, piece.offset, piece.nbytes)
            atomic_add(&self.bytes_read, piece.nbytes)
            atomic_add(&self.reads, 1)
        if through:
            self.scratch.release(place, piece.nbytes, slot)
        return error

    cdef int carry_all(self, const Job* job, Job* failed) noexcept nogil:
        """Does all pieces of a job; `failed` is what an error is about."""
        cdef size_t done, asked = job.offset, end = job.offset + job.nbytes, limit
        cdef int error = self.check(job)
        failed[0] = job[0]
        if error:
            return error
        done = self.piece_of(job, 0, failed)
        while done and error == 0:
            asked = max(asked, failed.offset)
            if asked < end and failed.offset + self.window // 2 >= asked:
                limit = min(end, failed.offset + self.window)
                self.ahead(job.source, asked, limit - asked)
                asked = limit
            error = self.carry(failed)
            if error == 0:
                done = self.piece_of(job, done, failed)
        return error

    cdef void ahead(self, size_t source, size_t offset, size_t nbytes) noexcept nogil:
        """Has the strategy ask for a range that will be wanted soon."""
        cdef File* file = &self.files[source]
        if nbytes:
            file.ahead(file, offset, nbytes)

    cdef object error_of(self, const Job* job, str name, int error):
        """The exception for a code of `check` or `carry`."""
        where = f"{name}: " if name else ""
        if error == NO_SOURCE:
            return InputError(f"{where}source {job.source} of {self.file_count}")
        cdef Source source = self.sources[job.source]
        if error == FAILED:
            failure, source.failure = source.failure, None
            return failure
        what = f"bytes {job.offset} to {job.offset + job.nbytes}"
        if error == TRUNCATED:
            size = os.fstat(source.fd).st_size if source.fd >= 0 else source.nbytes
            return FormatError(f"{where}{what} are beyond the end of {source.name} ({size} bytes)")
        if error == ENOMEM:
            return MemoryError(f"{where}{what} of {source.name}: no memory to read them into")
        return OSError(error, f"{where}{what} cannot be read: {os.strerror(error)}", source.name)
