# cython: cdivision=True, boundscheck=False, wraparound=False
"""Flat files of records: their tables, and whether every word of them is what its type says.

Whatever the bytes are: where `open_records` succeeds, all references of all records lie within the
tables, and no row is referred to twice. What numbers mean is checked by `vkrt.core.check`.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, memset, strlen

from vkrt.core.error cimport VKRT_ERROR_FORMAT, VKRT_ERROR_INPUT, VKRT_OK, Error, fail
from vkrt.core.flat cimport (
    FLAG, FLOAT, INT, MOST_DEPTH, NONE, OPTIONAL, RECORD, RECORDS_HEADER, RECORDS_VERSION, ROWS,
    TEXT, UNION, Part, Type,
)
from vkrt.core.records cimport LAYOUT, TABLES, Member, Records, Rows, Text

cdef extern from *:
    """
    #include "schema.h"
    /* Rows are used as they lie in files, on processors of any word. */
    #define VKRT_ASSERT_WORDS(size, number) _Static_assert((size) == 8 * (number), "words of a row")
    """
    void assert_words "VKRT_ASSERT_WORDS"(size_t size, int number) nogil
    const Part[1] PARTS "vkrt_parts"
    const Type[1] TYPES "vkrt_types"
    const int[1] TABLE_TYPES "vkrt_tables"

# Where a check of all rows, in the order in which they are referred to, is
cdef struct Walk:
    const Records* records
    int64_t[TABLES] done  # rows of each table (bytes of texts) that have been referred to
    int depth
    Error* error


cdef const char* records_magic() noexcept nogil:
    return "vkrtplan"


cdef const Type* type_at(int number) noexcept nogil:
    return TYPES + number


cdef const Type* table_type(int table) noexcept nogil:
    return TYPES + TABLE_TYPES[table]


cdef const Part* part_at(int number) noexcept nogil:
    return PARTS + number


cdef const int64_t* words_of(const Records* records, int table) noexcept nogil:
    """The first word of a table, 1 being the first that has rows."""
    cdef const int64_t* words
    # Pointers to rows of any type have one form, and follow one another.
    memcpy(&words, <const char*>&records.nothing + <size_t>(table - 1) * sizeof(void*),
           sizeof(void*))
    return words


cdef void point_to_table(Records* records, int table, const int64_t* words) noexcept nogil:
    memcpy(<char*>&records.nothing + <size_t>(table - 1) * sizeof(void*), &words, sizeof(void*))


cdef uint64_t checksum_of(const void* data, size_t nbytes) noexcept nogil:
    """Of whole words; it is another one where any of them is."""
    cdef uint64_t total = nbytes, word
    cdef size_t at
    for at in range(nbytes // 8):
        memcpy(&word, <const char*>data + 8 * at, 8)
        total = (total ^ word) * <uint64_t>0x5851F42D4C957F2D
        total ^= total >> 32
    return total


cdef int open_records(const void* data, size_t nbytes, Records* records,
                      Error* error) noexcept nogil:
    """Finds the tables of a flat file in memory, and checks every word of it.

    `data` begins at a multiple of 8 bytes, and stays unchanged as long as `records` is in use.
    """
    cdef Walk walk
    cdef uint32_t version, layout
    cdef uint64_t checksum
    cdef const char* bytes_ = <const char*>data
    assert_words(sizeof(Rows), 2)
    assert_words(sizeof(Text), 2)
    assert_words(sizeof(Member), 2)
    memset(records, 0, sizeof(records[0]))
    if <uintptr_t>data % 8:
        return fail(error, VKRT_ERROR_INPUT,
                    "records have to begin at a multiple of 8 bytes of memory")
    if nbytes < RECORDS_HEADER + 8 * TABLES or memcmp(bytes_, records_magic(), 8):
        return fail(error, VKRT_ERROR_FORMAT, "it is another kind of file, or cut off")
    memcpy(&version, bytes_ + 8, 4)
    memcpy(&layout, bytes_ + 12, 4)
    memcpy(&checksum, bytes_ + 16, 8)
    if version != RECORDS_VERSION or layout != <uint32_t>LAYOUT:
        return fail(error, VKRT_ERROR_FORMAT, "another version of vkrt has made it")
    if nbytes % 8 or checksum_of(bytes_ + RECORDS_HEADER, nbytes - RECORDS_HEADER) != checksum:
        return fail(error, VKRT_ERROR_FORMAT, "it is damaged: the checksum is another")
    if find_tables(bytes_, nbytes, records, error):
        return error.status
    memset(&walk, 0, sizeof(walk))
    walk.records, walk.error = records, error
    return check_all(&walk)


cdef int find_tables(const char* data, size_t nbytes, Records* records,
                     Error* error) noexcept nogil:
    """Points to the tables, which follow one another up to the end."""
    cdef size_t at = RECORDS_HEADER + 8 * TABLES, end
    cdef uint64_t words
    cdef int table
    memcpy(records.counts, data + RECORDS_HEADER, 8 * TABLES)
    for table in range(TABLES):
        # Words; negative counts are more of them than there can be.
        words = <uint64_t>records.counts[table]
        if table == 0:
            words = words // 8 + (words % 8 != 0)
        if words > (nbytes - at) // 8 // (table_type(table).width if table else 1):
            return fail(error, VKRT_ERROR_FORMAT, "%lld rows of table %d do not fit into the file",
                        <long long>records.counts[table], table)
        if table == 0:
            records.texts = data + at
            end = at + <size_t>records.counts[0]
            at += <size_t>(8 * words)
            while end < at:
                if data[end]:
                    return fail(error, VKRT_ERROR_FORMAT, "the texts are not followed by zeros")
                end += 1
        else:
            point_to_table(records, table, <const int64_t*>(data + at))
            at += <size_t>(8 * words * <uint64_t>table_type(table).width)
    if at != nbytes:
        return fail(error, VKRT_ERROR_FORMAT, "it has %zu bytes behind its last table", nbytes - at)
    return VKRT_OK


cdef int check_all(Walk* walk) noexcept nogil:
    """Checks what the outermost record refers to, and that this is everything."""
    cdef const char* name = "texts"
    cdef int table
    if take_rows(walk, TYPES, 0, 1, NULL):  # the first type of all is that of the outermost record
        return walk.error.status
    for table in range(TABLES):
        if table:
            name = table_type(table).name
        if walk.done[table] != walk.records.counts[table]:
            return fail(walk.error, VKRT_ERROR_FORMAT,
                        "%lld rows of '%s', expected %lld, as many as are referred to",
                        <long long>walk.records.counts[table], name,
                        <long long>walk.done[table])
    return VKRT_OK


cdef int take_rows(Walk* walk, const Type* kind, int64_t first, int64_t count,
                   const int64_t* at) noexcept nogil:
    """Checks rows of a table, which follow those that were referred to before; `at` refers to
    them."""
    cdef const int64_t* words
    cdef int64_t _
    if first != walk.done[kind.table] or count < 0 \
            or count > walk.records.counts[kind.table] - first:
        return wrong(walk, at, "rows from %lld on of the %lld of '%s', not %lld",
                     <long long>walk.done[kind.table], <long long>walk.records.counts[kind.table],
                     kind.name, <long long>count)
    walk.done[kind.table] += count
    if kind.is_plain:
        return VKRT_OK
    if walk.depth == MOST_DEPTH:
        return wrong(walk, at, "records in one another %d times at most", MOST_DEPTH)
    walk.depth += 1
    words = words_of(walk.records, kind.table) + first * kind.width
    for _ in range(count):
        if check_value(walk, kind, words):
            return walk.error.status
        words += kind.width
    walk.depth -= 1
    return VKRT_OK


cdef int check_value(Walk* walk, const Type* kind, const int64_t* at) noexcept nogil:
    """Checks the words of a value, and the rows that it refers to."""
    cdef const Part* parts = PARTS + kind.first
    cdef int part
    if kind.kind == INT or kind.kind == FLOAT:
        return VKRT_OK
    if kind.kind == RECORD:
        for part in range(kind.count):
            if check_value(walk, TYPES + parts[part].type, at):
                return walk.error.status
            at += TYPES[parts[part].type].width
        return VKRT_OK
    if kind.kind == ROWS:
        return take_rows(walk, TYPES + parts[0].type, at[0], at[1], at)
    if kind.kind == TEXT:
        return take_text(walk, at)
    if kind.kind == OPTIONAL:
        return check_optional(walk, kind, at)
    cdef int below = 2 if kind.kind == FLAG else 1 if kind.kind == NONE else kind.count
    if at[0] < 0 or at[0] >= below:
        return wrong(walk, at, "a number below %d", below)
    if kind.kind == UNION:
        return take_rows(walk, TYPES + parts[at[0]].type, at[1], 1, at + 1)
    return VKRT_OK


cdef int check_optional(Walk* walk, const Type* kind, const int64_t* at) noexcept nogil:
    cdef int word
    if at[0] == 1:
        return check_value(walk, TYPES + PARTS[kind.first].type, at + 1)
    for word in range(kind.width):
        if at[word]:
            return wrong(walk, at + word, "1 before something, or 0 and zeros")
    return VKRT_OK


cdef int take_text(Walk* walk, const int64_t* at) noexcept nogil:
    cdef int64_t first = at[0], count = at[1]
    if first != walk.done[0] or count < 0 or count > walk.records.counts[0] - first:
        return wrong(walk, at, "a text from byte %lld on of the %lld of texts, not %lld bytes",
                     <long long>walk.done[0], <long long>walk.records.counts[0], <long long>count)
    walk.done[0] += count
    if not is_utf8(<const unsigned char*>walk.records.texts + first, count):
        return wrong(walk, at, "the first byte of a text in UTF-8")
    return VKRT_OK


cdef bint is_utf8(const unsigned char* text, int64_t count) noexcept nogil:
    """Whether it is; surrogates, of which Python makes names that are none, are allowed."""
    cdef int64_t at = 0
    cdef int more, k
    cdef unsigned char low, high
    while at < count:
        low, high = 0x80, 0xBF
        if text[at] < 0x80:
            at += 1
            continue
        if 0xC2 <= text[at] <= 0xDF:
            more = 1
        elif 0xE0 <= text[at] <= 0xEF:
            more = 2
            low = 0xA0 if text[at] == 0xE0 else 0x80
        elif 0xF0 <= text[at] <= 0xF4:
            more = 3
            low = 0x90 if text[at] == 0xF0 else 0x80
            high = 0x8F if text[at] == 0xF4 else 0xBF
        else:
            return False
        if more >= count - at or not low <= text[at + 1] <= high:
            return False
        for k in range(2, more + 1):
            if not 0x80 <= text[at + k] <= 0xBF:
                return False
        at += more + 1
    return True


cdef bint equal_texts(const Records* records, const Text* a, const Text* b) noexcept nogil:
    return a.count == b.count and not memcmp(records.texts + a.first, records.texts + b.first,
                                             <size_t>a.count)


cdef bint is_text(const Records* records, const Text* text, const char* expected) noexcept nogil:
    cdef size_t length = strlen(expected)
    return (<size_t>text.count == length
            and memcmp(records.texts + text.first, expected, length) == 0)


cdef int name_word(const void* tables, const void* word, Error* error, int status) noexcept nogil:
    """Says where the word is that is not what `error` says is expected; returns `status`."""
    cdef const Records* records = <const Records*>tables
    cdef char[240] expected
    cdef const int64_t* first
    cdef uintptr_t at = <uintptr_t>word, start
    cdef const Type* kind
    cdef size_t written
    cdef int64_t value, words
    cdef int table
    memcpy(expected, error.text, sizeof(expected))
    for table in range(1, TABLES):
        first, kind = words_of(records, table), table_type(table)
        start = <uintptr_t>first
        if first == NULL or at < start \
                or at - start >= 8 * <uintptr_t>(records.counts[table] * kind.width):
            continue
        words = <int64_t>(at - start) // 8
        value = first[words]
        written = <size_t>snprintf(error.text, sizeof(error.text), "%s %lld", kind.name,
                                   <long long>(words // kind.width))
        write_path(error, &written, kind, words % kind.width)
        if written < sizeof(error.text):
            snprintf(error.text + written, sizeof(error.text) - written, ": %lld, expected %s",
                     <long long>value, <const char*>expected)
        return status
    snprintf(error.text, sizeof(error.text), "expected %s", <const char*>expected)
    return status


cdef void write_path(Error* error, size_t* written, const Type* kind, int64_t word) noexcept nogil:
    """Appends the names that lead to a word of a row."""
    cdef const Part* part = PARTS + kind.first
    cdef const char* between = ", "
    while kind.kind == RECORD or kind.kind == OPTIONAL:
        if kind.kind == OPTIONAL:
            if word == 0:
                break
            word -= 1
        else:
            while word >= TYPES[part.type].width:
                word -= TYPES[part.type].width
                part += 1
            if written[0] < sizeof(error.text):
                written[0] += <size_t>snprintf(
                    error.text + written[0], sizeof(error.text) - written[0], "%s%s", between,
                    part.name)
            between = "."
        kind = TYPES + part.type
        part = PARTS + kind.first
    if word == 1 and written[0] < sizeof(error.text):
        between = ".row" if kind.kind == UNION else ".count"
        written[0] += <size_t>snprintf(error.text + written[0], sizeof(error.text) - written[0],
                                       "%s", between)
