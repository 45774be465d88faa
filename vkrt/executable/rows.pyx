# cython: cdivision=True, boundscheck=False, wraparound=False
"""Records as rows of the core's tables: in memory, for the core to carry out, or in a flat file."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset


from vkrt.core.flat cimport (
    ENUM, FLAG, FLOAT, INT, MOST_DEPTH, OPTIONAL, RECORD, RECORDS_VERSION, ROWS, TEXT, UNION, Part,
    checksum_of, part_at, point_to_table, records_magic, table_type, type_at,
)
from vkrt.core.records cimport LAYOUT, TABLE_STORAGE, TABLES, TYPES
from vkrt.core.records cimport Rows as Span
from vkrt.executable.flat cimport CLASSES, NAMES

# Of a value of any type: the names of unions' members by that of the value's class
_MEMBERS = {"NoneType": "nothing", "bool": "flag", "int": "integer", "float": "number",
            "str": "text", "tuple": "any_rows", "ReadArgument": "read_argument", "Tensor": "tensor",
            "DispatchCommand": "dispatch_command", "CopyCommand": "copy_command",
            "BarrierCommand": "barrier_command"}
# The numbers of types, by the classes of their values
_TYPES = {CLASSES[number]: number for number in range(TYPES) if CLASSES[number] is not None}


def to_bytes(compiled):
    """The flat file of a `Compiled`."""
    tables = Tables()
    tables.add(type_at(0), (compiled,))
    return tables.file()


# What is made of the rows points to them, and the garbage collector clears in any order.
@cython.no_gc_clear
cdef class Rows:
    """Parts of an executable, as the core carries them out.

    Args:
        storages: of the method, by number; None: those of `execution`.
        execution, weights, states, prepack: an `ExecutionPlan`, a `WeightPlan`, a `StatePlan` and a
            `PrepackPlan`, or None.

    Attributes:
        records: the tables, for as long as this object is there.
        storages, execution, weights, states, prepack: the rows of the same names; NULL for None.
    """

    def __init__(self, storages=None, execution=None, weights=None, states=None, prepack=None):
        cdef Tables tables = Tables()
        self.tables = tables
        self.execution = <const ExecutionPlanRow*>tables.write_outermost(execution)
        self.weights = <const WeightPlanRow*>tables.write_outermost(weights)
        self.states = <const StatePlanRow*>tables.write_outermost(states)
        self.prepack = <const PrepackPlanRow*>tables.write_outermost(prepack)
        if storages is None:
            self.storages = self.execution.storages
        else:
            self.storages = Span(<int64_t>tables.add(table_type(TABLE_STORAGE), storages),
                                 len(storages))
        tables.point_records(&self.records)


cdef class Tables:
    """The tables that are written."""

    def __cinit__(self):
        self.texts = bytearray()

    def __dealloc__(self):
        cdef int table
        for table in range(TABLES):
            free(self.tables[table].words)
        for table in range(self.count):
            free(self.outermost[table].words)

    cdef const int64_t* write_outermost(self, record) except? NULL:
        """Writes a record that is in no table; NULL for None."""
        cdef const Type* kind
        cdef Table* room = &self.outermost[self.count]
        if record is None:
            return NULL
        kind = type_at(_TYPES[type(record)])
        room.words = <int64_t*>calloc(<size_t>kind.width + 1, sizeof(int64_t))
        if room.words == NULL:
            raise MemoryError()
        self.count += 1
        self.write(kind, record, room, 0)
        return room.words

    cdef int point_records(self, Records* records) except -1:
        """Points to the tables, to which nothing is added any more."""
        cdef int table
        memset(records, 0, sizeof(records[0]))
        records.texts = self.texts
        records.counts[0] = len(self.texts)
        for table in range(1, TABLES):
            records.counts[table] = self.tables[table].count // table_type(table).width
            point_to_table(records, table, self.tables[table].words)
        return 0

    cdef size_t add(self, const Type* kind, values) except? 0:
        """Writes values as rows that follow one another; returns the number of the first."""
        cdef Table* table = &self.tables[kind.table]
        cdef size_t start = table.count, at = start, end = start + len(values) * kind.width, room
        cdef int64_t* words
        if end > table.room:
            room = max(end, 2 * table.room)
            words = <int64_t*>realloc(table.words, room * sizeof(int64_t))
            if words == NULL:
                raise MemoryError()
            table.words, table.room = words, room
        if end > start:
            memset(table.words + start, 0, (end - start) * sizeof(int64_t))
        table.count = end
        if self.depth == MOST_DEPTH:
            raise AssertionError(f"{values} are more than {MOST_DEPTH} records in one another")
        self.depth += 1
        for value in values:
            self.write(kind, value, table, at)
            at += kind.width
        self.depth -= 1
        return start // kind.width

    cdef int write(self, const Type* kind, value, Table* table, size_t at) except -1:
        """Writes a value to the words of a table from `at` on."""
        cdef const Part* parts = part_at(kind.first)
        cdef const Type* part
        cdef double number
        cdef int64_t word
        cdef int k
        cdef tuple names = NAMES[kind - type_at(0)]
        if kind.kind == INT:
            word = value
            table.words[at] = word
        elif kind.kind == RECORD:
            cls = CLASSES[kind - type_at(0)]
            if cls is None and len(value) != kind.count:
                raise AssertionError(f"{value}, expected {kind.count} values")
            for k in range(kind.count):
                part = type_at(parts[k].type)
                self.write(part, value[k] if cls is None else getattr(value, names[k]), table, at)
                at += part.width
        elif kind.kind == ROWS:
            # What is added may move the table.
            word = <int64_t>self.add(type_at(parts[0].type), value)
            table.words[at] = word
            table.words[at + 1] = len(value)
        elif kind.kind == TEXT:
            text = value.encode("utf-8", "surrogatepass")
            table.words[at] = len(self.texts)
            table.words[at + 1] = len(text)
            self.texts += text
        elif kind.kind == FLAG:
            table.words[at] = bool(value)
        elif kind.kind == ENUM:
            table.words[at] = names.index(value)
        elif kind.kind == FLOAT:
            number = value
            memcpy(table.words + at, &number, sizeof(number))
        elif kind.kind == OPTIONAL:
            if value is not None:
                table.words[at] = 1
                self.write(type_at(parts[0].type), value, table, at + 1)
        elif kind.kind == UNION:
            k = names.index(_MEMBERS[type(value).__name__])
            word = <int64_t>self.add(type_at(parts[k].type), (value,))
            table.words[at] = k
            table.words[at + 1] = word
        return 0

    cdef bytes file(self):
        cdef uint32_t version = RECORDS_VERSION, layout = <uint32_t>LAYOUT
        cdef uint64_t total
        cdef int64_t count = len(self.texts)
        cdef int table
        counts = [(<char*>&count)[:8]]
        content = [bytes(self.texts), bytes((8 - count % 8) % 8)]
        for table in range(1, TABLES):
            count = self.tables[table].count // table_type(table).width
            counts.append((<char*>&count)[:8])
            content.append((<char*>self.tables[table].words)[:8 * self.tables[table].count])
        cdef bytes body = b"".join((*counts, *content))
        total = checksum_of(<const char*>body, len(body))
        return b"".join((records_magic()[:8], (<char*>&version)[:4], (<char*>&layout)[:4],
                         (<char*>&total)[:8], body))
