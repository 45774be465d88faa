"""Reader: brings bytes of files to where they are wanted, packing them on the way if asked to.

The core does it (`vkrt.core.reader`), without the GIL.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.errno cimport errno
from libc.stdint cimport SIZE_MAX
from libc.stdlib cimport free, malloc

from vkrt.errors import InputError
from vkrt.memory.strategies import STRATEGIES

from vkrt.core cimport reader as core
from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_OK, Error
from vkrt.core.file cimport File
from vkrt.core.pieces cimport Job, make_job
from vkrt.core.read_batch cimport MAX_THREADS
from vkrt.core.strategies cimport fail_read_after as set_failure
from vkrt.core.strided_copy cimport StridedCopy
from vkrt.memory.packing cimport Packing
from vkrt.memory.source cimport Source, exception_of

# How far ahead of the cursor the system may be asked to read.
DEFAULT_WINDOW = core.DEFAULT_WINDOW


def cache_limit():
    """Bytes of the largest file that stays in the system's cache by default: a quarter of the
    machine's memory."""
    return core.cache_limit()


def fail_read_after(long n):
    """Lets the n-th read of a file from now on fail with EIO, once.

    For tests. 1 is the next one; -1 (or 0) takes the order back. A read is one piece of a transfer,
    whichever way its bytes come.
    """
    set_failure(max(n, 0))


cdef class Transfer:
    """Bytes of a source and where they go.

    Args:
        source: index in the reader's sources.
        offset, nbytes: in the source.
        address: of the target; for a packed transfer the start of the WEIGHT's memory, whichever
            rows are packed. It has to stay valid until the transfer is done.
        packing: how the bytes are packed; None copies them.
        first_row, rows: of the packing, that these bytes are; all from `first_row` on by default.
        name: of the weight, for messages.
        room: how many bytes may be written from the address on; None: whoever calls knows.

    Raises:
        InputError: the packing has other rows, or needs more bytes than these.
        FormatError: there is not enough room.
    """

    def __init__(self, size_t source, size_t offset, size_t nbytes, size_t address,
                 Packing packing=None, size_t first_row=0, rows=None, str name="", room=None):
        cdef Job plain
        cdef Error error
        cdef const StridedCopy* copy = NULL if packing is None else &packing.copy
        cdef size_t most = SIZE_MAX if room is None else room
        cdef long long count = 0
        cdef Py_ssize_t name_bytes
        cdef int status
        self.packing = packing
        self.name = name
        plain.source, plain.offset, plain.nbytes = source, offset, nbytes
        plain.target, plain.name = <char*>address, PyUnicode_AsUTF8AndSize(name, &name_bytes)
        plain.name_bytes = <size_t>name_bytes
        if packing is not None:
            count = packing.rows - first_row if rows is None else rows
        status = make_job(&plain, most, copy, first_row, count, &self.job, &error)
        if status != VKRT_OK:
            raise exception_of(status, &error, 0, None)

    @property
    def source(self):
        return self.job.source

    @property
    def offset(self):
        return self.job.offset

    @property
    def nbytes(self):
        return self.job.nbytes


cdef class Reader:
    """Reads sources; see the module's docstring.

    A reader keeps its sources' mappings and files until it is closed. `run` may be called by one
    thread while others call `read`; none may be at work when it is closed.

    Args:
        sources: `Source`s; transfers name them by their index.
        strategy: one of `vkrt.memory.strategies`; "auto" reads what is not in the system's cache
            like "pread", and takes the rest from the mapping.
        window: bytes that the system may be asked to read ahead.
        threads: how many read; by default up to 4 for "auto" and "pread" where they wait for a
            disk, otherwise 1.
        keep_cached: whether what was read stays in the system's cache; None keeps files of up to
            `cache_limit()` bytes. Where it does not stay, some of what the system read ahead on its
            own account may.

    Raises:
        InputError: an argument is none of the above.
        ValueError: a source is closed.
    """

    def __init__(self, sources, strategy="auto", window=DEFAULT_WINDOW, threads=None,
                 keep_cached=None):
        if strategy != "auto" and strategy not in STRATEGIES:
            raise InputError(f"strategy {strategy!r}: expected 'auto', "
                             + ", ".join(repr(name) for name in STRATEGIES))
        if window < 1 or threads is not None and not 1 <= threads <= MAX_THREADS:
            raise InputError(f"window={window!r}, threads={threads!r}: expected at least 1 byte "
                             f"and 1 to {MAX_THREADS} threads")
        self.strategy = strategy
        self.sources, self.views = list(sources), []
        try:
            self._open(window, threads, keep_cached)
        except BaseException:
            self.close()
            raise

    def _open(self, window, threads, keep_cached):
        cdef core.ReaderOptions options
        cdef Error error
        cdef Source source
        cdef size_t count = len(self.sources), i
        cdef const File** files
        options.strategy = ("auto", *STRATEGIES).index(self.strategy)
        options.window = window
        options.threads = threads or 0
        options.keep_limit = SIZE_MAX
        if not keep_cached:
            options.keep_limit = cache_limit() if keep_cached is None else 0
        files = <const File**>malloc(max(count, <size_t>1) * sizeof(File*))
        if files == NULL:
            raise MemoryError()
        try:
            for i in range(count):
                source = self.sources[i]
                self.views.append(memoryview(source))
                files[i] = &source.file
            self._check(core.open_reader(files, count, &options, &self.reader, &error), &error,
                        NULL, None)
        finally:
            free(files)

    @property
    def window(self):
        return self.reader.pieces.window

    @property
    def threads(self):
        return self.reader.threads

    def run(self, transfers):
        """Carries out transfers, started in the order of the list; returns when all are done.

        Raises:
            OSError: a read failed; has the errno and the name of the file.
            FormatError: a file ends before a transfer's last byte.
            KeyboardInterrupt: no thread is at work any more.
        """
        cdef Transfer transfer
        cdef Error error
        cdef Job failed
        cdef Job* jobs
        cdef size_t count, i
        cdef int status
        cdef list raised = []
        cdef void* poll_data = <void*>raised
        self._check_open()
        transfers = list(transfers)  # their packings are needed to the end
        count = len(transfers)
        jobs = <Job*>malloc(max(count, <size_t>1) * sizeof(Job))
        if jobs == NULL:
            raise MemoryError()
        try:
            for i in range(count):
                transfer = transfers[i]
                jobs[i] = transfer.job
            with nogil:
                status = core.run_jobs(&self.reader, jobs, count, check_signals, poll_data,
                                       &failed, &error)
            self._check(status, &error, &failed, raised)
        finally:
            free(jobs)

    cdef int read(self, Transfer transfer) except -1 nogil:
        """Carries out a transfer on the calling thread, without the GIL."""
        cdef Error error
        cdef Job failed
        cdef int status = core.read_job(&self.reader, &transfer.job, &failed, &error)
        if status != VKRT_OK:
            with gil:
                self._check(status, &error, &failed, None)
        return 0

    def read_transfer(self, Transfer transfer not None):
        """Carries out a transfer on the calling thread; raises as `run` does."""
        self._check_open()
        with nogil:
            self.read(transfer)

    def start_ahead(self, size_t source, size_t offset, size_t nbytes):
        """Asks the system to read a range, a window of it at most, and does not wait for it: for
        what is read long after this call. The strategy "none" does not take it up."""
        cdef Error error
        cdef int status
        self._check_open()
        with nogil:
            status = core.start_ahead(&self.reader, source, offset, nbytes, &error)
        self._check(status, &error, NULL, None)

    def statistics(self):
        """Counters since the start, as a dict.

        `bytes` and `reads` (pieces) that arrived; `read_seconds` and `pack_seconds`, summed over
        threads: waiting for and copying bytes, and packing them (with the time faults take where
        they are packed from a mapping); `scratch_bytes`, the most at once; `asked`, bytes that the
        system was asked to read ahead, and `forgotten`, to take out of its cache.
        """
        cdef size_t i
        pieces = &self.reader.pieces
        asked = sum([pieces.files[i].asked for i in range(pieces.file_count)])
        forgotten = sum([pieces.files[i].forgotten for i in range(pieces.file_count)])
        return {"strategy": self.strategy, "bytes": pieces.bytes_read, "reads": pieces.reads,
                "read_seconds": pieces.read_time * 1e-9, "pack_seconds": pieces.pack_time * 1e-9,
                "scratch_bytes": pieces.scratch.peak, "asked": asked, "forgotten": forgotten}

    cdef int _check_open(self) except -1:
        if self.closed or self.reader.pieces.files == NULL:
            raise ValueError("the reader is closed")
        return 0

    cdef int _check(self, int status, const Error* error, const Job* failed,
                    list raised) except -1:
        """Raises what has failed in the core: of a callback what it has raised itself."""
        cdef int number = errno
        if status == VKRT_OK:
            return 0
        if raised:
            raise raised[0]
        return self.fail(status, error, failed, number)

    cdef int fail(self, int status, const Error* error, const Job* failed, int number) except -1:
        """Raises what the core says of a job that has failed, with the system's error number."""
        cdef Source source = self._source_of(error, failed)
        if status == VKRT_ERROR_CANCELLED and source is not None:
            failure, source.failure = source.failure, None
            if failure is not None:  # no other thread has told it
                raise failure
        raise exception_of(status, error, number, None if source is None else source.name)

    cdef Source _source_of(self, const Error* error, const Job* failed):
        """The source that an error is about: a job's, or the one that its text ends with."""
        if failed != NULL:
            return (self.sources[failed.source] if failed.source < <size_t>len(self.sources)
                    else None)
        text = error.text.decode(errors="replace")
        for source in self.sources:
            if text.endswith(source.name) or (<Source>source).failure is not None:
                return source
        return None

    def close(self):
        """Frees scratch memory and lets go of the sources; may be called twice."""
        if self.closed:
            return
        self.closed = True
        core.close_reader(&self.reader)
        for view in self.views:
            view.release()
        self.views = []

    def __dealloc__(self):
        core.close_reader(&self.reader)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


cdef int check_signals(void* raised) noexcept with gil:
    """Handles signals; keeps what a handler raises, and ends the run for it."""
    try:
        PyErr_CheckSignals()
        return 0
    except BaseException as failure:
        (<list>raised).append(failure)
        return 1
