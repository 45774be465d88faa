# cython: language_level=3
# cython: cdivision=True
"""A list of transfers at work: its pieces, taken in order by any number of threads."""

import threading

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, realloc

from vkrt.memory.pieces cimport Job, PieceReader
from vkrt.memory.strategies cimport File, forget_range, in_cache
from vkrt.memory.system cimport atomic_add, atomic_change, atomic_load, atomic_store, nap

# Bytes after which the calling thread looks for signals.
cdef size_t BETWEEN_SIGNALS = 8 << 20
# How many pieces of a list tell whether it is in the system's cache.
cdef size_t WARM_SAMPLES = 16


cdef class ReadBatch:
    """Carries out jobs in pieces; made, filled by `add`, run once.

    Attributes:
        nbytes: of all jobs together.
    """

    def __cinit__(self, PieceReader reader not None):
        self.reader = reader
        self.names = []
        self.failures = []

    def __dealloc__(self):
        free(self.pieces)

    cdef int add(self, const Job* job, str name) except -1:
        """Appends the pieces of a job.

        Raises:
            FormatError, InputError: there are no such bytes.
        """
        cdef Job piece
        cdef Piece* pieces
        cdef size_t done, capacity
        cdef int error = self.reader.check(job)
        if error:
            raise self.reader.error_of(job, name, error)
        done = self.reader.piece_of(job, 0, &piece)
        while done:
            if self.count == self.capacity:
                capacity = 2 * self.capacity + 16
                pieces = <Piece*>realloc(self.pieces, capacity * sizeof(Piece))
                if pieces == NULL:
                    raise MemoryError()
                self.pieces, self.capacity = pieces, capacity
            self.pieces[self.count].job = piece
            self.pieces[self.count].transfer = len(self.names)
            self.pieces[self.count].before = self.nbytes
            self.nbytes += piece.nbytes
            self.count += 1
            done = self.reader.piece_of(job, done, &piece)
        self.names.append(name)
        return 0

    cdef bint is_warm(self) noexcept nogil:
        """Whether the bytes are in memory, as far as some of the pieces can tell."""
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

    def run(self, int threads):
        """Does everything; no thread is at work any more when it returns or raises.

        Raises:
            FormatError, OSError, MemoryError: for the first piece of those that failed.
            KeyboardInterrupt: and whatever else a signal's handler raises.
        """
        if threads == 1:
            self.work_here()
        else:
            self._run_threads(threads)
        self._raise_failure()
        self.forget_all()

    def _run_threads(self, threads):
        workers = []
        try:
            for _ in range(threads):
                worker = threading.Thread(target=self.work, name="vkrt-reader", daemon=True)
                try:
                    worker.start()
                except RuntimeError:  # the system has no more
                    break
                workers.append(worker)
            if not workers:
                self.work_here()
            for worker in workers:
                worker.join()
        except BaseException:
            # A join that a signal's handler breaks off may take a thread for ended that is not, and
            # the signal may come before the thread is known here: its work tells.
            with nogil:
                atomic_store(&self.stop, 1)
                while atomic_load(&self.working):
                    nap()
            raise

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
        cdef bint more
        # In this order, so that whoever has stopped the batch and sees nobody at work is alone.
        atomic_add(&self.working, 1)
        more = not atomic_load(&self.stop) and self.do_next(nbytes)
        atomic_add(&self.working, <uint64_t>-1)
        return more

    cdef bint do_next(self, size_t* nbytes) noexcept nogil:
        cdef size_t index = atomic_add(&self.next, 1)
        cdef int error
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

    def _raise_failure(self):
        cdef size_t index
        if self.failures:
            index, error = min(self.failures)
            name = self.names[self.pieces[index].transfer]
            raise self.reader.error_of(&self.pieces[index].job, name, error)

    cdef void ahead(self, size_t index) noexcept nogil:
        """Has the system read the pieces from the `index`-th on, up to a window."""
        cdef Piece* piece
        cdef Piece* last = self.pieces + self.count
        cdef size_t before = self.pieces[index].before
        cdef size_t limit = before + self.reader.window
        cdef size_t source, offset, end
        if not atomic_change(&self.asking, 0, 1):
            return  # another thread is about it
        self.asked = max(self.asked, index)
        piece = self.pieces + self.asked
        # Asked in halves of the window: each time costs a look at all of its pages.
        if piece < last and piece.before <= before + self.reader.window // 2:
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
