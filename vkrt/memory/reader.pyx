# cython: language_level=3
"""Reader: brings bytes of files to where they are wanted, packing them on the way if asked to.

A transfer is carried out in pieces. Threads take pieces in the order of the list; each reads its
piece (`vkrt.memory.strategies` has the ways), packs it out of a scratch buffer that fits the
processor's cache, and goes on. Nobody holds the GIL meanwhile.
"""

import os

from libc.string cimport memset

from vkrt.errors import InputError
from vkrt.memory.strategies import STRATEGIES

from vkrt.memory.read_batch cimport ReadBatch
from vkrt.memory.packing cimport Packing
from vkrt.memory.pieces cimport Job, PieceReader
from vkrt.memory.source cimport Source
from vkrt.memory.strategies cimport File, ask_for, fail_after

# How far ahead of the cursor the system may be asked to read.
DEFAULT_WINDOW = 32 << 20
# Several reads at once keep a disk busy, whoever waits for them.
THREADS = {"auto": 4, "pread": 4}
# Below this many bytes another thread is not worth starting.
cdef size_t PER_THREAD = 1 << 20


def cache_limit():
    """Bytes of the largest file that stays in the system's cache by default.

    A quarter of the machine's memory: a larger one would push out what other programs use, to
    leave behind what this one has just stored elsewhere.
    """
    return os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def fail_read_after(long n):
    """Lets the n-th read of a file from now on fail with EIO, once.

    For tests. 1 is the next one; -1 (or 0) takes the order back. A read is one piece of a transfer,
    whichever way its bytes come.
    """
    fail_after(max(n, 0))


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

    Raises:
        InputError: the packing has other rows, or needs more bytes than these.
    """

    def __init__(self, size_t source, size_t offset, size_t nbytes, size_t address,
                 Packing packing=None, size_t first_row=0, rows=None, str name=""):
        cdef Job* job = &self.job
        self.packing = packing
        self.name = name
        memset(job, 0, sizeof(Job))
        job.source, job.offset, job.nbytes = source, offset, nbytes
        job.target = <char*>address
        if nbytes and not address:
            raise InputError(f"{name or 'a transfer'}: {nbytes} bytes to nowhere")
        if packing is None:
            return
        count = packing.rows - first_row if rows is None else rows
        if first_row > packing.rows or not 0 <= count <= packing.rows - first_row:
            raise InputError(f"{name or 'a transfer'}: rows {first_row} to {first_row + count} of "
                             f"{packing.rows}")
        needed = packing.bytes_of(count)
        if nbytes < needed:
            raise InputError(f"{name or 'a transfer'}: {count} rows need {needed} bytes, not "
                             f"{nbytes}")
        job.nbytes = needed
        if packing.is_copy:
            # Read in place.
            job.target += first_row * packing.copy.part_target * packing.copy.itemsize
            return
        job.copy = &packing.copy
        job.first, job.parts = first_row, count
        if packing.copy.columns:
            job.parts = count * packing.copy.parts

    @property
    def source(self):
        return self.job.source

    @property
    def offset(self):
        return self.job.offset

    @property
    def nbytes(self):
        return self.job.nbytes


cdef class Reader(PieceReader):
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
        cdef size_t i
        if strategy != "auto" and strategy not in STRATEGIES:
            raise InputError(f"strategy {strategy!r}: expected 'auto', "
                             + ", ".join(repr(name) for name in STRATEGIES))
        if window < 1 or threads is not None and not 1 <= threads <= 256:
            raise InputError(f"window={window!r}, threads={threads!r}: expected at least 1 byte "
                             "and 1 to 256 threads")
        self.strategy = strategy
        self.window = window
        self.threads = threads or THREADS.get(strategy, 1)
        self.may_choose = threads is None
        try:
            self.open_files(sources, strategy)
            for i in range(self.file_count):
                self._prepare(i, keep_cached)
        except BaseException:
            self.close()
            raise

    def _prepare(self, size_t index, keep_cached):
        cdef File* file = &self.files[index]
        cdef Source source = self.sources[index]
        if keep_cached is None:
            keep_cached = source.nbytes <= cache_limit()
        file.forget = not keep_cached

    def run(self, transfers):
        """Carries out transfers, started in the order of the list; returns when all are done.

        Raises:
            OSError: a read failed; has the errno and the name of the file.
            FormatError: a file ends before a transfer's last byte.
            KeyboardInterrupt: no thread is at work any more.
        """
        cdef Transfer transfer
        self._check_open()
        transfers = list(transfers)  # their packings are needed to the end
        cdef ReadBatch batch = ReadBatch(self)
        for transfer in transfers:
            batch.add(&transfer.job, transfer.name)
        try:
            batch.run(self._threads_for(batch))
        finally:
            self.scratch.free_idle()

    def _threads_for(self, ReadBatch batch):
        threads = min(self.threads, max(batch.nbytes // PER_THREAD, <size_t>1))
        if threads > 1 and self.may_choose and batch.is_warm():
            # Nobody waits for a disk, and one processor copies nearly as fast as the memory can.
            return 1
        return threads

    cdef int read(self, Transfer transfer) except -1 nogil:
        """Carries out a transfer on the calling thread, without the GIL."""
        cdef Job failed
        cdef int error = self.carry_all(&transfer.job, &failed)
        if error:
            with gil:
                raise self.error_of(&failed, transfer.name, error)
        return 0

    def read_transfer(self, Transfer transfer not None):
        """Carries out a transfer on the calling thread; raises as `run` does."""
        self._check_open()
        with nogil:
            self.read(transfer)

    def start_ahead(self, size_t source, size_t offset, size_t nbytes):
        """Asks the system to read a range, a window of it at most, and does not wait for it.

        For what is read long after this call. "none" does not take it up. Of calls
        that go forward in a file those are left out of which half a window has been asked already:
        each costs a look at all of its pages.
        """
        self._check_open()
        if source >= self.file_count:
            raise InputError(f"source {source} of {self.file_count}")
        cdef File* file = &self.files[source]
        cdef size_t start = offset, end
        if file.fd < 0 or self.strategy == "none" or offset >= file.nbytes:
            return
        end = offset + min(nbytes, min(self.window, file.nbytes - offset))
        if file.asked_from <= offset < file.asked_to:
            if end <= file.asked_to or file.asked_to - offset > self.window // 2:
                return
            start = file.asked_to
        file.asked_from, file.asked_to = offset, end
        with nogil:
            ask_for(file, start, end - start)

    def statistics(self):
        """Counters since the start, as a dict.

        `bytes` and `reads` (pieces) that arrived; `read_seconds` and `pack_seconds`, summed over
        threads: waiting for and copying bytes, and packing them (with the time faults take where
        they are packed from a mapping); `scratch_bytes`, the most at once; `asked`, bytes that the
        system was asked to read ahead, and `forgotten`, to take out of its cache.
        """
        cdef size_t i
        asked = forgotten = 0
        if self.files != NULL:
            asked = sum([self.files[i].asked for i in range(self.file_count)])
            forgotten = sum([self.files[i].forgotten for i in range(self.file_count)])
        return {"strategy": self.strategy, "bytes": self.bytes_read, "reads": self.reads,
                "read_seconds": self.read_time * 1e-9, "pack_seconds": self.pack_time * 1e-9,
                "scratch_bytes": self.scratch.peak, "asked": asked, "forgotten": forgotten}

    cdef int _check_open(self) except -1:
        if self.closed or self.files == NULL:
            raise ValueError("the reader is closed")
        return 0

    def close(self):
        """Frees scratch memory and lets go of the sources; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self.scratch.free_idle()
        self.close_files()
        for view in self.views:
            view.release()
        self.views = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
