# cython: language_level=3
# cython: cdivision=True
"""Reader: brings bytes of files to where they are wanted, packing them on the way if asked to.

A transfer is carried out in pieces. Threads take pieces in the order of the list; each reads its
piece (`vkrt.memory.strategies` has the ways), packs it out of a scratch buffer that fits the
processor's cache, and goes on. Nobody holds the GIL meanwhile.
"""

import os
import threading

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport ENOMEM
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.stdlib cimport posix_memalign
from posix.unistd cimport close

from vkrt.errors import FormatError, InputError
from vkrt.memory.strategies import STRATEGIES

from vkrt.memory.packing cimport Packing, pack_rows, rows_bytes
from vkrt.memory.source cimport Source
from vkrt.memory.strategies cimport (
    ALIGNED_PLACE,
    ANY_PLACE,
    DIRECT_ALIGNMENT,
    TRUNCATED,
    File,
    direct_room,
    fail_after,
    forget_range,
    in_cache,
    use_strategy,
)
from vkrt.memory.system cimport (
    O_DIRECT,
    atomic_add,
    atomic_change,
    atomic_load,
    atomic_store,
    now,
    want,
)

cdef enum:
    NO_SOURCE = -2  # a code of `Reader.check`, like TRUNCATED

cdef struct Piece:
    Job job
    size_t transfer  # index in the list
    size_t before  # bytes of all pieces before it

# How far ahead of the cursor the system may be asked to read.
DEFAULT_WINDOW = 32 << 20

# Several reads at once keep a disk busy, whoever waits for them.
THREADS = {"auto": 4, "pread": 4}
# The largest piece: packed ones have to fit the cache of a core. What a mapping has in memory is
# this for each thread.
cdef size_t PIECE = 1 << 20
# Below this many bytes another thread is not worth starting.
cdef size_t PER_THREAD = 1 << 20
# How many pieces of a list tell whether it is in the system's cache.
cdef size_t WARM_SAMPLES = 16
# Bytes after which a read in the calling thread looks for signals.
cdef size_t BETWEEN_SIGNALS = 8 << 20


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


def processors():
    """How many threads of this process can compute at once."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


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
            job.target += first_row * packing.walk.row_target * packing.walk.itemsize
            return
        job.walk = &packing.walk
        job.first_row, job.rows = first_row, count

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
    thread while others call `read` and `copy`; none may be at work when it is closed.

    Args:
        sources: `Source`s; transfers name them by their index.
        strategy: one of `vkrt.memory.strategies`; "auto" reads what is not in the system's cache
            like "pread", and takes the rest from the mapping.
        window: bytes that the system may be asked to read ahead.
        threads: how many read; by default up to 4 for "auto" and "pread", which then wait for
            several reads of the disk at once, otherwise 1.
        keep_cached: whether what was read stays in the system's cache; None keeps files of up to
            `cache_limit()` bytes.
        direct: reads past the system's cache; only with "pread". Where the system refuses, reads
            are buffered and `notes` says so.

    Attributes:
        notes: decisions worth telling, in plain words.

    Raises:
        InputError: an argument is none of the above.
        ValueError: a source is closed.
    """

    def __cinit__(self):
        self.files = NULL
        memset(self.scratches, 0, sizeof(self.scratches))

    def __init__(self, sources, strategy="auto", window=DEFAULT_WINDOW, threads=None,
                 keep_cached=None, direct=False):
        cdef size_t i
        cdef Source source
        if strategy not in STRATEGIES:
            raise InputError(f"strategy {strategy!r}: expected "
                             + ", ".join(repr(name) for name in STRATEGIES))
        if direct and strategy != "pread":
            raise InputError(f"direct reads need strategy 'pread', not {strategy!r}")
        if window < 1 or threads is not None and not 1 <= threads <= 256:
            raise InputError(f"window={window!r}, threads={threads!r}: expected at least 1 byte "
                             "and 1 to 256 threads")
        self.strategy = strategy
        self.window = window
        self.threads = threads or THREADS.get(strategy, 1)
        self.may_choose = threads is None
        self.direct = direct
        self.notes = []
        self.sources = list(sources)
        # Views keep mappings and files open.
        self.views = []
        self.file_count = len(self.sources)
        self.files = <File*>calloc(max(self.file_count, <size_t>1), sizeof(File))
        if self.files == NULL:
            raise MemoryError()
        for i in range(self.file_count):
            self.files[i].direct = -1
        try:
            for i in range(self.file_count):
                source = self.sources[i]
                self.views.append(memoryview(source))
                use_strategy(&self.files[i], source, strategy, direct)
                if keep_cached is None:
                    self.files[i].forget = source.nbytes > cache_limit()
                else:
                    self.files[i].forget = not keep_cached
                if direct and source.is_file:
                    self.files[i].direct = self._open_direct(source)
        except BaseException:
            self.close()
            raise

    def _open_direct(self, Source source):
        """The source's file once more, for direct reads; -1 where the system refuses."""
        fd = -1
        try:
            fd = os.open(source.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | O_DIRECT)
            if not O_DIRECT or os.fstat(fd).st_ino != source.inode:
                raise OSError("not possible here")
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            self.notes.append(f"{source.name} is read through the system's cache: direct reads "
                              f"were refused ({error})")
            return -1
        return fd

    # Whole lists

    def run(self, transfers):
        """Carries out transfers, started in the order of the list; returns when all are done.

        Raises:
            OSError: a read failed; has the errno and the name of the file.
            FormatError: a file ends before a transfer's last byte.
            KeyboardInterrupt: no thread is at work any more.
        """
        cdef Batch batch
        cdef size_t total = 0
        cdef Transfer transfer
        self._check_open()
        batch = Batch(self, transfers)
        for transfer in batch.transfers:
            total += transfer.job.nbytes
        count = min(self.threads, max(total // PER_THREAD, <size_t>1))
        if self.may_choose and batch.is_warm():
            # Nobody waits for a disk: more threads than processors only take turns.
            count = min(count, processors())
        try:
            if count == 1:
                batch.work_here()
            else:
                self._run_threads(batch, count)
            batch.raise_failure()
            batch.forget_all()
        finally:
            self.free_scratch()
            self._note_refusals()

    def _run_threads(self, Batch batch, count):
        workers = []
        try:
            for _ in range(count):
                worker = threading.Thread(target=batch.work, name="vkrt-reader", daemon=True)
                worker.start()
                workers.append(worker)
        except RuntimeError:  # no more threads on this system
            if not workers:
                batch.work_here()
        except BaseException:
            batch.stop_and_join(workers)
            raise
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            batch.stop_and_join(workers)
            raise

    # Single transfers

    cdef int read(self, Transfer transfer) except -1 nogil:
        """Carries out a transfer on the calling thread, without the GIL."""
        cdef Job failed
        cdef int error = self.carry_all(&transfer.job, &failed)
        if error:
            with gil:
                raise self.error_of(&failed, transfer.name, error)
        return 0

    cdef int copy(self, size_t source, size_t offset, size_t nbytes, char* target) except -1 nogil:
        """Copies bytes on the calling thread, without the GIL; for staging."""
        cdef Job job, failed
        cdef int error
        memset(&job, 0, sizeof(Job))
        job.source, job.offset, job.nbytes, job.target = source, offset, nbytes, target
        error = self.carry_all(&job, &failed)
        if error:
            with gil:
                raise self.error_of(&failed, "", error)
        return 0

    cdef int carry_all(self, const Job* job, Job* failed) noexcept nogil:
        """Does all pieces of a job; `failed` is what an error is about."""
        cdef size_t done
        cdef int error = self.check(job)
        failed[0] = job[0]
        if error:
            return error
        self.ahead(job.source, job.offset, job.nbytes)
        done = self.piece_of(job, 0, failed)
        while done and error == 0:
            error = self.carry(failed)
            if error == 0:
                done = self.piece_of(job, done, failed)
        return error

    def read_transfer(self, Transfer transfer not None):
        """Carries out a transfer on the calling thread; raises as `run` does."""
        self._check_open()
        with nogil:
            self.read(transfer)

    def read_bytes(self, size_t source, size_t offset, size_t nbytes):
        """Bytes of a source, read on the calling thread; raises as `run` does."""
        cdef bytearray result
        cdef char* target
        self._check_open()
        if not nbytes:
            return b""
        result = bytearray(nbytes)
        target = result
        with nogil:
            self.copy(source, offset, nbytes, target)
        return bytes(result)

    def start_ahead(self, size_t source, size_t offset, size_t nbytes):
        """Asks the system to read a range, a window of it at most, and does not wait for it.

        For what is read long after this call. Direct reads and "none" do not take it up.
        """
        self._check_open()
        if source >= self.file_count:
            raise InputError(f"source {source} of {self.file_count}")
        cdef File* file = &self.files[source]
        if file.fd < 0 or self.strategy == "none" or file.direct >= 0 or offset >= file.nbytes:
            return
        nbytes = min(nbytes, min(self.window, file.nbytes - offset))
        with nogil:
            want(file.fd, offset, nbytes)

    cdef void ahead(self, size_t source, size_t offset, size_t nbytes) noexcept nogil:
        cdef File* file = &self.files[source]
        if nbytes:
            file.ahead(file, offset, min(nbytes, self.window))

    # Pieces

    cdef int check(self, const Job* job) noexcept nogil:
        """0, or why a job cannot be done at all."""
        if job.source >= self.file_count:
            return NO_SOURCE
        cdef File* file = &self.files[job.source]
        if job.offset > file.nbytes or job.nbytes > file.nbytes - job.offset:
            return TRUNCATED
        return 0

    cdef size_t piece_of(self, const Job* job, size_t done, Job* piece) noexcept nogil:
        """The piece of a job after `done` bytes (of a packed one: rows).

        Returns what is done after the piece; 0 if there is none.
        """
        cdef size_t count, row_bytes
        piece[0] = job[0]
        if job.walk == NULL:
            count = min(job.nbytes - done, PIECE)
            piece.offset += done
            piece.nbytes = count
            piece.target += done
            return done + count if count else 0
        count = job.rows - done
        if count == 0 or job.nbytes == 0:
            return 0
        row_bytes = job.walk.row_source * job.walk.itemsize
        count = min(count, max(PIECE // row_bytes, <size_t>1))
        piece.offset += done * row_bytes
        piece.first_row += done
        piece.rows = count
        piece.nbytes = rows_bytes(job.walk, count)
        return done + count

    cdef int carry(self, const Job* piece) noexcept nogil:
        """Reads a piece and puts it in its place; an errno, TRUNCATED or 0."""
        cdef File* file = &self.files[piece.source]
        cdef bint packed = piece.walk != NULL
        cdef size_t room = piece.nbytes
        cdef char* place = piece.target
        cdef bint through = file.places == ALIGNED_PLACE or packed and file.places == ANY_PLACE
        cdef int slot = -1
        cdef int error = 0
        cdef const char* data
        cdef uint64_t start, middle
        if through:
            if file.places == ALIGNED_PLACE:
                room = direct_room(room)
            place = self.acquire(room, &slot)
            if place == NULL:
                return ENOMEM
        start = now()
        data = file.fetch(file, piece.offset, piece.nbytes, place, &error)
        if data != NULL and not packed and data != piece.target:
            memcpy(piece.target, data, piece.nbytes)
        middle = now()
        if data != NULL and packed:
            pack_rows(piece.walk, data, piece.target, piece.first_row, piece.rows)
        if data != NULL:
            file.behind(file, piece.offset, piece.nbytes)
            atomic_add(&self.pack_time, now() - middle)
            atomic_add(&self.bytes_read, piece.nbytes)
            atomic_add(&self.reads, 1)
        atomic_add(&self.read_time, middle - start)
        if through:
            self.release(place, room, slot)
        return error

    cdef object error_of(self, const Job* job, str name, int error):
        """The exception for a code of `check` or `carry`."""
        where = f"{name}: " if name else ""
        if error == NO_SOURCE:
            return InputError(f"{where}source {job.source} of {self.file_count}")
        cdef Source source = self.sources[job.source]
        what = f"bytes {job.offset} to {job.offset + job.nbytes}"
        if error == TRUNCATED:
            size = os.fstat(source.fd).st_size if source.fd >= 0 else source.nbytes
            return FormatError(f"{where}{what} are beyond the end of {source.name} ({size} bytes)")
        if error == ENOMEM:
            return MemoryError(f"{where}{what} of {source.name}: no memory to pack them in")
        return OSError(error, f"{where}{what} cannot be read: {os.strerror(error)}", source.name)

    # Scratch memory

    cdef char* acquire(self, size_t nbytes, int* slot) noexcept nogil:
        """Memory of at least `nbytes`, aligned for direct reads; NULL: there is none."""
        cdef int i
        cdef void* data = NULL
        cdef Scratch* scratch
        cdef uint64_t total
        for i in range(SCRATCHES):
            scratch = &self.scratches[i]
            if atomic_change(&scratch.busy, 0, 1):
                if scratch.nbytes >= nbytes:
                    slot[0] = i
                    return scratch.data
                free(scratch.data)
                atomic_add(&self.scratch_now, -<uint64_t>scratch.nbytes)
                scratch.data, scratch.nbytes = NULL, 0
                slot[0] = i
                break
        else:
            slot[0] = -1
        if posix_memalign(&data, DIRECT_ALIGNMENT, nbytes):
            data = NULL
            nbytes = 0
        if slot[0] >= 0:
            scratch = &self.scratches[slot[0]]
            scratch.data, scratch.nbytes = <char*>data, nbytes
            if data == NULL:
                atomic_store(&scratch.busy, 0)
        total = atomic_add(&self.scratch_now, nbytes) + nbytes
        if total > self.scratch_most:
            self.scratch_most = total
        return <char*>data

    cdef void release(self, char* data, size_t nbytes, int slot) noexcept nogil:
        """Gives scratch memory back, for the next piece."""
        if slot >= 0:
            atomic_store(&self.scratches[slot].busy, 0)
        else:
            free(data)
            atomic_add(&self.scratch_now, -<uint64_t>nbytes)

    cdef void free_scratch(self) noexcept nogil:
        """Frees the scratch memory that nobody uses."""
        cdef int i
        cdef Scratch* scratch
        for i in range(SCRATCHES):
            scratch = &self.scratches[i]
            if atomic_change(&scratch.busy, 0, 1):
                free(scratch.data)
                atomic_add(&self.scratch_now, -<uint64_t>scratch.nbytes)
                scratch.data, scratch.nbytes = NULL, 0
                atomic_store(&scratch.busy, 0)

    # The rest

    @property
    def scratch_bytes(self):
        """The most bytes of scratch memory there were at once."""
        return self.scratch_most

    def statistics(self):
        """Counters since the start, as a dict.

        `bytes` and `reads` (pieces) that arrived; `read_seconds` and `pack_seconds`, summed over
        threads: waiting for and copying bytes, and packing them (with the time faults take where
        they are packed from a mapping); `scratch_bytes`, the most at once.
        """
        return {"strategy": self.strategy, "bytes": self.bytes_read, "reads": self.reads,
                "read_seconds": self.read_time * 1e-9, "pack_seconds": self.pack_time * 1e-9,
                "scratch_bytes": self.scratch_most}

    def _note_refusals(self):
        cdef size_t i
        for i in range(self.file_count):
            if self.files[i].refused and self.files[i].direct >= 0:
                close(self.files[i].direct)
                self.files[i].direct = -1
                self.notes.append(f"{self.sources[i].name} is read through the system's cache: a "
                                  "direct read was refused")

    cdef int _check_open(self) except -1:
        if self.closed or self.files == NULL:
            raise ValueError("the reader is closed")
        return 0

    def close(self):
        """Frees scratch memory and lets go of the sources; may be called twice."""
        if self.closed:
            return
        self.closed = True
        self.free_scratch()
        self._close_files()
        for view in self.views or ():
            view.release()
        self.views = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    cdef void _close_files(self) noexcept:
        cdef size_t i
        if self.files != NULL:
            for i in range(self.file_count):
                if self.files[i].direct >= 0:
                    close(self.files[i].direct)
        self.file_count = 0
        free(self.files)
        self.files = NULL

    def __dealloc__(self):
        self.free_scratch()
        self._close_files()


cdef class Batch:
    """The pieces of a list of transfers, taken in order by any number of threads."""

    cdef Reader reader
    cdef list transfers
    cdef list failures
    cdef Piece* pieces
    cdef size_t count
    cdef uint64_t next
    cdef uint64_t stop
    cdef uint64_t asking
    cdef size_t asked

    def __cinit__(self, Reader reader, transfers):
        cdef Transfer transfer
        cdef size_t index, total = 0, done
        cdef Job job
        cdef int error
        self.reader = reader
        self.transfers = list(transfers)
        self.failures = []
        for transfer in self.transfers:
            error = reader.check(&transfer.job)
            if error:
                raise reader.error_of(&transfer.job, transfer.name, error)
            done = reader.piece_of(&transfer.job, 0, &job)
            while done:
                self.count += 1
                done = reader.piece_of(&transfer.job, done, &job)
        self.pieces = <Piece*>calloc(max(self.count, <size_t>1), sizeof(Piece))
        if self.pieces == NULL:
            raise MemoryError()
        cdef Piece* piece = self.pieces
        for index, transfer in enumerate(self.transfers):
            done = reader.piece_of(&transfer.job, 0, &piece.job)
            while done:
                piece.transfer = index
                piece.before = total
                total += piece.job.nbytes
                piece += 1
                if piece == self.pieces + self.count:
                    break
                done = reader.piece_of(&transfer.job, done, &piece.job)

    def __dealloc__(self):
        free(self.pieces)

    def work(self):
        """A thread's work: pieces until there are none, or one failed."""
        cdef size_t nbytes = 0
        with nogil:
            while self.advance(&nbytes):
                pass

    def work_here(self):
        """The same on the calling thread, which handles signals in between."""
        cdef size_t nbytes
        cdef bint more = True
        while more:
            nbytes = 0
            with nogil:
                while more and nbytes < BETWEEN_SIGNALS:
                    more = self.advance(&nbytes)
            PyErr_CheckSignals()

    cdef bint advance(self, size_t* nbytes) noexcept nogil:
        """Does the next piece and counts its bytes; False where there is none, or one failed."""
        cdef size_t index
        cdef int error
        if atomic_load(&self.stop):
            return False
        index = atomic_add(&self.next, 1)
        if index >= self.count:
            return False
        self.ahead(index)
        error = self.reader.carry(&self.pieces[index].job)
        if error:
            atomic_store(&self.stop, 1)
            with gil:
                self.failures.append((index, error))
            return False
        nbytes[0] += self.pieces[index].job.nbytes
        return True

    def is_warm(self):
        """Whether the bytes are in memory, as far as some pieces of the list can tell."""
        cdef size_t i = 0
        cdef Job* job
        cdef File* file
        while i < self.count:
            job = &self.pieces[i].job
            file = &self.reader.files[job.source]
            if file.fd >= 0 and not (file.tells_cached
                                     and in_cache(file, job.offset, job.nbytes)):
                return False
            i += self.count // WARM_SAMPLES + 1
        return True

    def raise_failure(self):
        """Raises for the first piece that failed, if one did."""
        cdef size_t index
        cdef Transfer transfer
        if not self.failures:
            return
        index, error = min(self.failures)
        transfer = self.transfers[self.pieces[index].transfer]
        raise self.reader.error_of(&self.pieces[index].job, transfer.name, error)

    cdef void ahead(self, size_t index) noexcept nogil:
        """Has the system read the pieces after the `index`-th, up to a window."""
        cdef size_t limit = self.pieces[index].before + self.reader.window
        cdef Piece* piece
        cdef Piece* last = self.pieces + self.count
        cdef size_t source, offset, end
        if not atomic_change(&self.asking, 0, 1):
            return  # another thread is about it
        if self.asked < index:
            self.asked = index
        piece = self.pieces + self.asked
        # Asked in halves of the window: each time costs a look at all of its pages.
        if piece < last and piece.before <= self.pieces[index].before + self.reader.window // 2:
            while piece < last and piece.before + piece.job.nbytes <= limit:
                source, offset = piece.job.source, piece.job.offset
                end = offset
                while (piece < last and piece.before + piece.job.nbytes <= limit
                       and piece.job.source == source and piece.job.offset == end):
                    end += piece.job.nbytes
                    piece += 1
                self.reader.ahead(source, offset, end - offset)
            self.asked = piece - self.pieces
        atomic_store(&self.asking, 0)

    def stop_and_join(self, workers):
        """Ends the threads, whatever comes in between."""
        atomic_store(&self.stop, 1)
        for worker in workers:
            while worker.is_alive():
                try:
                    worker.join()
                except KeyboardInterrupt:
                    continue

    cdef void forget_all(self) noexcept nogil:
        """Takes what was consumed out of the cache, with the pages that pieces shared."""
        cdef Piece* piece = self.pieces
        cdef Piece* last = piece + self.count
        cdef size_t source, offset, end
        while piece < last:
            source, offset = piece.job.source, piece.job.offset
            end = offset
            while piece < last and piece.job.source == source and piece.job.offset == end:
                end += piece.job.nbytes
                piece += 1
            forget_range(&self.reader.files[source], offset, end - offset)
