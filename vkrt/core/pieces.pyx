# cython: cdivision=True
"""Pieces: the unit of reading. Each is fetched, and packed out of the processor's cache."""

from libc.errno cimport ENOMEM
from libc.stdint cimport SIZE_MAX, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from vkrt.core.atomic cimport atomic_add64, atomic_change64, atomic_raise, atomic_write64
from vkrt.core.error cimport (
    VKRT_ERROR_CANCELLED, VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT, VKRT_ERROR_MEMORY, VKRT_OK,
    Error, fail,
)
from vkrt.core.file cimport File, fail_file, end_of_name
from vkrt.core.packing cimport pack_parts
from vkrt.core.strategies cimport NOT_PROVIDED, TRUNCATED, FileReader
from vkrt.core.strided_copy cimport StridedCopy, parts_bytes, rows_bytes
from vkrt.core.system cimport file_size, map_memory, now, unmap_memory

cdef enum:
    # of the largest piece: packed ones have to fit the cache of a core. What a mapping has in
    # memory is this for each thread.
    PIECE = 1048576
    # at multiples of which columns are cut: a whole line of the cache for every element
    COLUMNS = 64
    # of a name in messages, with what stands behind it
    MOST_NAME = 82


cdef int make_job(const Job* plain, size_t room, const StridedCopy* copy, int64_t first_row,
                  int64_t rows, Job* job, Error* error) noexcept nogil:
    """Fills in a job that packs rows of a weight, or checks one that does not.

    Args:
        plain: has the source, the range of bytes, the target and the name.
        copy: NULL: the bytes are taken as they are. It has to outlive the job.
        first_row, rows: of the copy, that the bytes are.
    """
    cdef char[MOST_NAME + 1] name
    cdef size_t needed, before
    job[0] = plain[0]
    job.copy, job.first, job.parts = NULL, 0, 0
    if job.nbytes and job.target == NULL:
        return fail(error, VKRT_ERROR_INPUT, "%s: %zu bytes to nowhere",
                    name_of(job, "a transfer", "", name), job.nbytes)
    if copy == NULL:
        return check_room(job, job.nbytes, room, error)
    before = row_target(copy) * <size_t>first_row
    if (check_rows(job, copy, first_row, rows, error)
            or check_room(job, row_target(copy) * <size_t>rows,
                          room - before if room > before else 0, error)):
        return error.status
    needed = rows_bytes(copy, <size_t>rows)
    if job.nbytes < needed:
        return fail(error, VKRT_ERROR_INPUT, "%s: %lld rows need %zu bytes, not %zu",
                    name_of(job, "a transfer", "", name), <long long>rows, needed, job.nbytes)
    job.nbytes = needed
    if copy.whole and copy.base == 0:
        job.target += before  # read in place
        return VKRT_OK
    job.copy = copy
    job.first = <size_t>first_row
    job.parts = <size_t>rows * copy.parts if copy.columns else <size_t>rows
    return VKRT_OK


cdef int make_job_of_rows(const Job* plain, size_t room, size_t place, const StridedCopy* copy,
                          int64_t first_row, int64_t rows, Job* job, Error* error) noexcept nogil:
    """The same for rows that go to memory of their own, at `plain.target`, and lie `place` bytes
    from the start of the weight."""
    cdef Job shifted = plain[0]
    cdef size_t before
    if copy != NULL:
        before = row_target(copy) * <size_t>first_row
        if (check_rows(plain, copy, first_row, rows, error)
                or check_room(plain, before, place, error)):
            return error.status
        # Targets of packed jobs are counted from the start of the weight.
        shifted.target = <char*>(<size_t>plain.target - before)
        room = room + before if room <= SIZE_MAX - before else SIZE_MAX
    return make_job(&shifted, room, copy, first_row, rows, job, error)


cdef int check_rows(const Job* job, const StridedCopy* copy, int64_t first_row, int64_t rows,
                    Error* error) noexcept nogil:
    cdef char[MOST_NAME + 1] name
    if first_row < 0 or first_row > <int64_t>copy.rows \
            or not 0 <= rows <= <int64_t>copy.rows - first_row:
        return fail(error, VKRT_ERROR_INPUT, "%s: rows %lld to %lld of %zu",
                    name_of(job, "a transfer", "", name), <long long>first_row,
                    <long long>(<uint64_t>first_row + <uint64_t>rows),
                    copy.rows)
    return VKRT_OK


cdef int check_room(const Job* job, size_t nbytes, size_t room, Error* error) noexcept nogil:
    cdef char[MOST_NAME + 1] name
    if nbytes > room:
        return fail(error, VKRT_ERROR_FORMAT, "%s: %zu bytes of it, expected %zu at most",
                    name_of(job, "a transfer", "", name), nbytes, room)
    return VKRT_OK


cdef size_t row_target(const StridedCopy* copy) noexcept nogil:
    """Bytes of a row in the target."""
    return copy.target_bytes // copy.rows


cdef const char* name_of(const Job* job, const char* unnamed, const char* behind,
                         char* name) noexcept nogil:
    """The name of a job and what stands behind it, in `name`; or what stands for one."""
    if job.name_bytes == 0:
        return unnamed
    snprintf(name, MOST_NAME + 1, "%.*s%s", <int>min(job.name_bytes, <size_t>80), job.name, behind)
    return name


cdef int check_job(const PieceReader* reader, const Job* job) noexcept nogil:
    """0, or why a job cannot be done at all."""
    cdef const File* file
    if job.source >= reader.file_count:
        return NO_SOURCE
    file = reader.files[job.source].file
    if job.offset > file.nbytes or job.nbytes > file.nbytes - job.offset:
        return TRUNCATED
    return 0


cdef size_t piece_of(const Job* job, size_t done, Job* piece) noexcept nogil:
    """The piece of a job after `done` bytes (of a packed one: parts).

    Returns what is done after the piece; 0 if there is none.
    """
    cdef size_t count, part_bytes
    piece[0] = job[0]
    if job.copy == NULL:
        count = min(job.nbytes - done, <size_t>PIECE)
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


# Scratch memory: what bytes pass through between the file and their packing. Every thread at work
# has a part of it, kept for its next piece until it is freed. Each is a mapping of its own, so that
# its pages go back to the system at once; one that holds whole huge pages asks for them.

cdef char* acquire_scratch(ScratchPool* pool, size_t nbytes, int* slot) noexcept nogil:
    """Memory of at least `nbytes`, for the calling thread alone; NULL: there is none.

    `slot` has to be given back with it.
    """
    cdef int i
    cdef char* data = NULL
    cdef Scratch* scratch
    slot[0] = -1
    for i in range(SCRATCHES):
        scratch = &pool.scratches[i]
        if atomic_change64(&scratch.busy, 0, 1):
            if scratch.nbytes >= nbytes:
                slot[0] = i
                return scratch.data
            drop(pool, scratch)
            slot[0] = i
            break
    data = map_memory(nbytes)
    if data == NULL:
        nbytes = 0
    if slot[0] >= 0:
        scratch = &pool.scratches[slot[0]]
        scratch.data, scratch.nbytes = data, nbytes
        if data == NULL:
            atomic_write64(&scratch.busy, 0)
    atomic_raise(&pool.peak, atomic_add64(&pool.held, nbytes))
    return data


cdef void release_scratch(ScratchPool* pool, char* data, size_t nbytes, int slot) noexcept nogil:
    """Gives memory back, with what `acquire_scratch` was asked for; the next piece may use it."""
    if slot >= 0:
        atomic_write64(&pool.scratches[slot].busy, 0)
    else:
        unmap_memory(data, nbytes)
        atomic_add64(&pool.held, -<uint64_t>nbytes)


cdef void drop(ScratchPool* pool, Scratch* scratch) noexcept nogil:
    unmap_memory(scratch.data, scratch.nbytes)
    atomic_add64(&pool.held, -<uint64_t>scratch.nbytes)
    scratch.data, scratch.nbytes = NULL, 0


cdef void free_idle_scratch(ScratchPool* pool) noexcept nogil:
    cdef int i
    cdef Scratch* scratch
    for i in range(SCRATCHES):
        scratch = &pool.scratches[i]
        if atomic_change64(&scratch.busy, 0, 1):
            drop(pool, scratch)
            atomic_write64(&scratch.busy, 0)


cdef int carry_piece(PieceReader* reader, const Job* piece) noexcept nogil:
    """Reads a piece and puts it in its place; an errno, TRUNCATED or 0."""
    cdef FileReader* file = &reader.files[piece.source]
    cdef bint packed = piece.copy != NULL
    cdef bint through = packed and file.in_place
    cdef char* place = piece.target
    cdef int slot = -1
    cdef int error = 0
    cdef const char* data
    cdef uint64_t start, middle
    if through:
        place = acquire_scratch(&reader.scratch, piece.nbytes, &slot)
        if place == NULL:
            return ENOMEM
    start = now()
    data = file.fetch(file, piece.offset, piece.nbytes, place, &error)
    if data != NULL and not packed and data != piece.target:
        memcpy(piece.target, data, piece.nbytes)
    middle = now()
    atomic_add64(&reader.read_time, middle - start)
    if data != NULL:
        if packed:
            pack_parts(piece.copy, data, piece.target, piece.first, piece.parts)
            atomic_add64(&reader.pack_time, now() - middle)
        file.behind(file, piece.offset, piece.nbytes)
        atomic_add64(&reader.bytes_read, piece.nbytes)
        atomic_add64(&reader.reads, 1)
    if through:
        release_scratch(&reader.scratch, place, piece.nbytes, slot)
    return error


cdef int carry_job(PieceReader* reader, const Job* job, Job* failed) noexcept nogil:
    """Does all pieces of a job; `failed` is what an error is about."""
    cdef size_t done, asked = job.offset, end = job.offset + job.nbytes, limit
    cdef int error = check_job(reader, job)
    cdef FileReader* file
    failed[0] = job[0]
    if error:
        return error
    file = &reader.files[job.source]
    done = piece_of(job, 0, failed)
    while done and error == 0:
        asked = max(asked, failed.offset)
        if asked < end and failed.offset + reader.window // 2 >= asked:
            limit = min(end, failed.offset + reader.window)
            file.ahead(file, asked, limit - asked)
            asked = limit
        error = carry_piece(reader, failed)
        if error == 0:
            done = piece_of(job, done, failed)
    return error


cdef int fail_job(const PieceReader* reader, const Job* job, int code,
                  Error* error) noexcept nogil:
    """The status, and its text, of a code other than 0 about a job or a piece of it."""
    cdef char what[160]
    cdef char[MOST_NAME + 1] room
    cdef const char* name = name_of(job, "", ": ", room)
    cdef const File* file
    if code == NO_SOURCE:
        return fail(error, VKRT_ERROR_INPUT, "%ssource %zu of %zu", name, job.source,
                    reader.file_count)
    file = reader.files[job.source].file
    snprintf(what, sizeof(what), "%sbytes %zu to %zu", name, job.offset, job.offset + job.nbytes)
    if code == TRUNCATED:
        return fail(error, VKRT_ERROR_FORMAT, "%s are beyond the end of %s (%lld bytes)", what,
                    end_of_name(file.name),
                    file_size(file.fd) if file.fd >= 0 else <long long>file.nbytes)
    if code == NOT_PROVIDED:
        return fail(error, VKRT_ERROR_CANCELLED, "%s of %s were not provided", what,
                    end_of_name(file.name))
    if code == ENOMEM:
        return fail(error, VKRT_ERROR_MEMORY, "%s of %s: no memory to read them into", what,
                    end_of_name(file.name))
    snprintf(what, sizeof(what), "%sbytes %zu to %zu cannot be read", name, job.offset,
             job.offset + job.nbytes)
    return fail_file(error, code, what, file.name)
