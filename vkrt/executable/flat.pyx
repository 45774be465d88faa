# cython: cdivision=True, boundscheck=False, wraparound=False
"""Records in flat files: Python's face of the core's tables.

vkrt/core/README.md says how records lie in such a file. The core checks all of its words, and that
they fit together, before any of them becomes an object.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable.program import RECORDS

from vkrt.core.error cimport VKRT_ERROR_MEMORY, VKRT_ERROR_UNSUPPORTED, VKRT_OK, Error
from vkrt.core.flat cimport (
    ENUM, FLAG, FLOAT, INT, OPTIONAL, RECORD, RECORDS_HEADER, ROWS, TEXT, UNION, Part, Type,
    checksum_of, open_records, part_at, type_at, words_of,
)
from vkrt.core.program cimport PROGRAM_VERSION, ProgramHead, check_program, read_head
from vkrt.core.records cimport TABLES, TYPES

cdef extern from "Python.h":
    int PyObject_GenericSetAttr(object, object, object) except -1

HEADER_BYTES = RECORDS_HEADER
PROGRAM_FILE_VERSION = PROGRAM_VERSION

# Of every type: the names of its parts, and the class of its values where it has one
cdef list NAMES = []
cdef list CLASSES = []
cdef int _number
for _number in range(TYPES):
    NAMES.append(tuple([part_at(type_at(_number).first + k).name.decode()
                        for k in range(type_at(_number).count)]))
    CLASSES.append(RECORDS.get(type_at(_number).name.decode()))


def checksum(bytes data not None):
    """The checksum of the bytes behind a file's header."""
    return checksum_of(<const char*>data, len(data))


def records_of(bytes head not None, uint64_t file_bytes):
    """Where the records begin in the file of a compiled program.

    Args:
        head: its first bytes.
        file_bytes: how many it has.

    Raises:
        FormatError: it is not a whole one.
    """
    cdef ProgramHead found
    cdef Error error
    check_status(read_head(<const char*>head, len(head), file_bytes, &found, &error), &error)
    return found.offset


cdef int check_status(int status, Error* error) except -1:
    """Raises what the core has found."""
    text = error.text.decode("utf-8", "replace") if status != VKRT_OK else ""
    if status == VKRT_ERROR_MEMORY:
        raise MemoryError(text)
    if status == VKRT_ERROR_UNSUPPORTED:
        raise UnsupportedError(text)
    if status != VKRT_OK:
        raise FormatError(text)
    return 0


cdef class File:
    """A flat file of a `Compiled`, checked.

    Args:
        data: the file.
        sources: how many files there are that weights may be in.
        data_bytes: how many bytes lie before the records in the same file, which are its weights
            and modules; 0 where weights are in other files, and modules in none.

    Raises:
        FormatError: it is not what `vkrt.executable.rows.to_bytes` makes, or something in it does
            not fit something else.
    """

    def __init__(self, bytes data not None, int64_t sources, int64_t data_bytes):
        cdef Error error
        cdef const char* memory = data
        cdef size_t nbytes = len(data)
        cdef int status
        self.data = data
        with nogil:
            status = open_records(memory, nbytes, &self.records, &error)
            if status == VKRT_OK:
                status = check_program(&self.records, sources, data_bytes, &error)
        check_status(status, &error)

    def read(self):
        """The `Compiled`, made anew."""
        cdef Reader reader = Reader()
        reader.records = &self.records
        return reader.read(type_at(0), words_of(&self.records, type_at(0).table))


cdef class Reader:
    """Makes objects of records that have been checked."""

    def __cinit__(self):
        # Of every table: values that refer to no other, by their words
        self.known = [{} for _ in range(TABLES)]

    cdef object read(self, const Type* kind, const int64_t* at):
        """The value of some words."""
        cdef double number
        if kind.kind == INT:
            return at[0]
        if kind.kind == RECORD:
            return self.record(kind, at)
        if kind.kind == ROWS:
            return self.rows(type_at(part_at(kind.first).type), at[0], at[1])
        if kind.kind == TEXT:
            return self.records.texts[at[0]:at[0] + at[1]].decode("utf-8", "surrogatepass")
        if kind.kind == FLAG:
            return at[0] == 1
        if kind.kind == ENUM:
            return (<tuple>NAMES[kind - type_at(0)])[at[0]]
        if kind.kind == FLOAT:
            memcpy(&number, at, sizeof(number))
            return number
        if kind.kind == OPTIONAL:
            return self.read(type_at(part_at(kind.first).type), at + 1) if at[0] else None
        if kind.kind == UNION:
            kind = type_at(part_at(kind.first + <int>at[0]).type)
            return self.read(kind, words_of(self.records, kind.table) + at[1] * kind.width)
        return None

    cdef object record(self, const Type* kind, const int64_t* at):
        """A record or a tuple of fixed length. What a class does when an object is made was done
        before it was written."""
        cdef const Part* parts = part_at(kind.first)
        cdef const Type* part
        cdef int k
        cdef tuple names = NAMES[kind - type_at(0)]
        cls = CLASSES[kind - type_at(0)]
        values = []
        for k in range(kind.count):
            part = type_at(parts[k].type)
            values.append(self.read(part, at))
            at += part.width
        if cls is None:
            return tuple(values)
        if issubclass(cls, tuple):
            return cls._make(values)
        made = cls.__new__(cls)
        for name, value in zip(names, values):
            PyObject_GenericSetAttr(made, name, value)
        return made

    cdef tuple rows(self, const Type* kind, int64_t first, int64_t count):
        """The values of rows that follow one another. Rows of the same words are one value where
        they refer to no others, as many dispatches read the same."""
        cdef const int64_t* at = words_of(self.records, kind.table) + first * kind.width
        cdef dict known = self.known[kind.table]
        cdef list values = []
        cdef int64_t _
        for _ in range(count):
            if kind.kind == INT or not kind.is_leaf:
                value = self.read(kind, at)
            else:
                words = PyBytes_FromStringAndSize(<const char*>at, 8 * kind.width)
                value = known.get(words)
                if value is None:
                    value = known[words] = self.read(kind, at)
            values.append(value)
            at += kind.width
        return tuple(values)
