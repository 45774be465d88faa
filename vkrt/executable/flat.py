"""Flat files: records as tables of 64-bit words, which are checked as they are read.

    magic of 8 bytes, u32 version, u32 layout, sha256 of everything behind it
    of each table: u64 offset in the file, u64 number of words (of the texts: of bytes)
    the tables, one behind the other, each at a multiple of 8 bytes

All of it is little-endian. The first table has the texts, in UTF-8. Every other one has the rows of
one type, and a row has as many words as its type:

    int, bool, float    one word: the number, 0 or 1, or the bits of the float
    str                 two words: where it begins in the texts, and how many bytes it has
    a record            the words of its fields, one after the other
    tuple[A, B]         the words of its elements
    tuple[A, ...]       two words: its first row in the table of A, and how many rows it has
    A | None            one word, 0 for None, then the words of A, which are 0 for None
    A | B               two words: which of the types, and a row in the table of that
    None                one word, 0, as one of such types
    Any                 two words, as of a union of everything that it may be

Which tables there are, and what is in their rows, follows from the class of the outermost record;
its one row is the first of its table. The layout is a number for all of that: another one is that
of records with other fields. Rows are written in the order in which they are referred to,
and each is referred to once, so that records have one encoding and reading it takes no longer than
the file is long.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence

from vkrt.dataclass import dataclass, fields
from vkrt.digest import sha256
from vkrt.errors import FormatError
from vkrt.hints import Any

HEADER = struct.Struct("<8sII32s")
ENTRY = struct.Struct("<QQ")
_FLOAT, _WORD = struct.Struct("<d"), struct.Struct("<q")
TEXTS = "texts"


@dataclass(frozen=True)
class _Type:
    """How values of a type lie in rows.

    Attributes:
        name: of the type, which is that of its table.
        width: words of a row.
        write: gives the words of a value.
        read: the value of the words from some place on.
        is_leaf: whether its words refer to no table.
    """

    name: str
    width: int
    write: Callable[[_Writer, Any], list[int]]
    read: Callable[[_Reader, Sequence[int], int], Any]
    is_leaf: bool = True


class _Writer:
    """The tables that are written."""

    def __init__(self, names: Iterable[str]):
        self.texts = bytearray()
        self.rows = {name: array("q") for name in names}

    def text(self, value: str) -> list[int]:
        data, first = value.encode("utf-8", "surrogatepass"), len(self.texts)
        self.texts += data
        return [first, len(data)]

    def add(self, kind: _Type, values: Sequence[Any]) -> list[int]:
        """Writes values as rows that follow one another."""
        table, width = self.rows[kind.name], kind.width
        start = len(table)
        table.extend([0] * (width * len(values)))
        for number, value in enumerate(values):
            at = start + number * width
            table[at:at + width] = array("q", kind.write(self, value))
        return [start // width, len(values)]


class _Reader:
    """The tables of a file, of which every row is read once, in order."""

    def __init__(self, texts: bytes, rows: dict[str, array[int]]):
        self.texts, self.rows = texts, rows
        self.done = dict.fromkeys((TEXTS, *rows), 0)
        self.known: dict[str, dict[bytes, Any]] = {name: {} for name in rows}

    def text(self, first: int, count: int) -> str:
        self._take(TEXTS, first, count, len(self.texts))
        try:
            return self.texts[first:first + count].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise FormatError(f"byte {first} of the texts begins no UTF-8") from error

    def take(self, kind: _Type, first: int, count: int) -> tuple[Any, ...]:
        """The values of rows that follow one another."""
        table, width = self.rows[kind.name], kind.width
        self._take(kind.name, first, count, len(table) // width)
        places = range(first * width, (first + count) * width, width)
        if kind.name == "int":
            return tuple(table[first:first + count])
        if not kind.is_leaf:
            return tuple([kind.read(self, table, at) for at in places])
        # Rows of the same words are one value, as many dispatches read the same.
        known, values = self.known[kind.name], []
        for at in places:
            words = table[at:at + width].tobytes()
            value = known.get(words)
            if value is None:
                value = known[words] = kind.read(self, table, at)
            values.append(value)
        return tuple(values)

    def _take(self, name: str, first: int, count: int, total: int) -> None:
        if first != self.done[name] or not 0 <= count <= total - first:
            raise FormatError(f"expected rows from {self.done[name]} on of the {total} of '{name}',"
                              f" got {count} from {first} on")
        self.done[name] = first + count


class Format:
    """How records of one class, and all that they refer to, lie in a file.

    Args:
        root: the class of the outermost record.
        classes: further ones that annotations name.
        unions: what annotations call a union, and which.
        anything: the records that a value of type Any may be.
        magic, version: of the file.
    """

    def __init__(self, root: type, classes: Iterable[type], unions: dict[str, str],
                 anything: Sequence[type], magic: bytes, version: int):
        self._classes = {cls.__name__: cls for cls in (root, *classes, *anything)}
        self._unions = unions
        self._anything = tuple(cls.__name__ for cls in anything)
        self._magic, self._version = magic, version
        self._types: dict[str, _Type] = {}
        self._tables: dict[str, int] = {}
        self._fields: list[str] = []
        self._root = self._table(root.__name__)
        described = "\n".join((*self._fields, *self._tables)).encode()
        self.layout = int.from_bytes(sha256(described)[:4], "little")

    def to_bytes(self, value: Any) -> bytes:
        """The file of a record."""
        writer = _Writer(self._tables)
        writer.add(self._root, [value])
        tables = [bytes(writer.texts), *(_little(rows).tobytes() for rows in writer.rows.values())]
        counts = [len(writer.texts), *map(len, writer.rows.values())]
        at = HEADER.size + ENTRY.size * len(tables)
        directory, content = bytearray(), bytearray()
        for table, count in zip(tables, counts):
            padding = -at % 8
            content += bytes(padding)
            directory += ENTRY.pack(at + padding, count)
            content += table
            at += padding + len(table)
        body = bytes(directory + content)
        return HEADER.pack(self._magic, self._version, self.layout, sha256(body)) + body

    def from_bytes(self, data: bytes) -> Any:
        """The record of a file.

        Raises:
            FormatError: it is not what `to_bytes` makes.
        """
        if len(data) < HEADER.size or data[:len(self._magic)] != self._magic:
            raise FormatError("it is another kind of file")
        _, version, layout, digest = HEADER.unpack_from(data)
        if (version, layout) != (self._version, self.layout):
            raise FormatError("another version of vkrt has made it")
        if sha256(data[HEADER.size:]) != digest:
            raise FormatError("it is damaged: the checksum is another")
        count = 1 + len(self._tables)
        at = HEADER.size + ENTRY.size * count
        if len(data) < at:
            raise FormatError(f"it has no room for {count} tables")
        tables = []
        for number in range(count):
            start, entries = ENTRY.unpack_from(data, HEADER.size + ENTRY.size * number)
            end = start + entries * (8 if number else 1)
            if start != at + -at % 8 or end > len(data) or any(data[at:start]):
                raise FormatError(f"table {number} does not follow the one before it")
            tables.append(data[start:end])
            at = end
        if at != len(data):
            raise FormatError(f"it has {len(data) - at} bytes behind its last table")
        return self._read(tables[0], tables[1:])

    def _read(self, texts: bytes, tables: Sequence[bytes]) -> Any:
        rows = {}
        for (name, width), table in zip(self._tables.items(), tables):
            rows[name] = words = _little(array("q", table))
            if len(words) % width:
                raise FormatError(f"'{name}' ends within a row")
        reader = _Reader(texts, rows)
        try:
            value, = reader.take(self._root, 0, 1)
        except (AssertionError, RecursionError) as error:
            raise FormatError(str(error)) from error
        for name, width in ((TEXTS, 1), *self._tables.items()):
            if reader.done[name] * width != len(texts if name == TEXTS else rows[name]):
                raise FormatError(f"'{name}' has more than is referred to")
        return value

    # Types

    def _table(self, name: str) -> _Type:
        """The type of a name, which has a table."""
        kind = self._type(name)
        self._tables[kind.name] = kind.width
        return kind

    def _type(self, name: str) -> _Type:
        """The type that an annotation names."""
        name = self._unions.get(name, name)
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = self._made(name)
        return found

    def _made(self, name: str) -> _Type:
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name in self._classes:
            return self._record(self._classes[name])
        if name == "Any":
            names = ("None", "bool", "int", "float", "str", "tuple[Any, ...]", *self._anything)
            return self._union("Any", names)
        parts = _split(name, " | ")
        if len(parts) == 2 and parts[1] == "None":
            return self._optional(name, self._type(parts[0]))
        if len(parts) > 1:
            return self._union(name, parts)
        parts = _split(name.removeprefix("tuple[")[:-1], ", ")
        if not name.startswith("tuple["):
            raise AssertionError(f"{name} is no type of a flat file")
        if parts[1:] == ["..."]:
            return self._many(name, parts[0])
        return self._inline(name, [self._type(part) for part in parts], lambda *values: values,
                            lambda value: value)

    def _record(self, cls: type) -> _Type:
        declared = [field.name for field in fields(cls)]
        notes: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            notes |= base.__dict__.get("__annotations__", {})
        self._fields.append(f"{cls.__name__} {[(name, notes[name]) for name in declared]}")
        return self._inline(cls.__name__, [self._type(notes[name]) for name in declared], cls,
                            lambda value: [getattr(value, name) for name in declared])

    def _inline(self, name: str, parts: Sequence[_Type], make: Callable[..., Any],
                values_of: Callable[[Any], Iterable[Any]]) -> _Type:
        """Values whose parts lie one after the other."""
        starts = [sum(part.width for part in parts[:number]) for number in range(len(parts))]
        readers = [(part.read, start) for part, start in zip(parts, starts)]

        def write(writer: _Writer, value: Any) -> list[int]:
            words: list[int] = []
            for part, item in zip(parts, values_of(value), strict=True):
                words += part.write(writer, item)
            return words

        def read(reader: _Reader, words: Sequence[int], at: int) -> Any:
            return make(*[read(reader, words, at + start) for read, start in readers])

        return _Type(name, sum(part.width for part in parts), write, read,
                     all(part.is_leaf for part in parts))

    def _many(self, name: str, element: str) -> _Type:
        """Tuples of any length."""
        # Its table may be made of this type itself, as that of Any is.
        def write(writer: _Writer, value: Any) -> list[int]:
            return writer.add(self._type(element), value)

        def read(reader: _Reader, words: Sequence[int], at: int) -> Any:
            return reader.take(self._type(element), words[at], words[at + 1])

        made = self._types[name] = _Type(name, 2, write, read, False)
        self._table(element)
        return made

    def _optional(self, name: str, kind: _Type) -> _Type:
        def write(writer: _Writer, value: Any) -> list[int]:
            if value is None:
                return [0] * (1 + kind.width)
            return [1, *kind.write(writer, value)]

        def read(reader: _Reader, words: Sequence[int], at: int) -> Any:
            if words[at] == 1:
                return kind.read(reader, words, at + 1)
            if any(words[at:at + 1 + kind.width]):
                raise FormatError(f"{words[at]}, expected 0 or 1 before {kind.name}")
            return None

        return _Type(name, 1 + kind.width, write, read, kind.is_leaf)

    def _union(self, name: str, names: Sequence[str]) -> _Type:
        """One of several types, each with a table."""
        def write(writer: _Writer, value: Any) -> list[int]:
            number = _number_of(type(value), names)
            return [number, writer.add(self._type(names[number]), [value])[0]]

        def read(reader: _Reader, words: Sequence[int], at: int) -> Any:
            number = words[at]
            if not 0 <= number < len(names):
                raise FormatError(f"{number}, expected the number of one of {', '.join(names)}")
            return reader.take(self._type(names[number]), words[at + 1], 1)[0]

        made = self._types[name] = _Type(name, 2, write, read, False)
        for member in names:
            self._table(member)
        return made


def _number_of(cls: type, names: Sequence[str]) -> int:
    name = {"NoneType": "None", "tuple": "tuple[Any, ...]"}.get(cls.__name__, cls.__name__)
    if name not in names:
        raise AssertionError(f"{cls} is none of {', '.join(names)}")
    return names.index(name)


def _split(text: str, separator: str) -> list[str]:
    """Parts of an annotation between separators that are in no brackets."""
    parts, depth = [""], 0
    for piece in text.split(separator):
        if depth:
            parts[-1] += separator + piece
        else:
            parts.append(piece)
        depth += piece.count("[") - piece.count("]")
    return parts[1:]


def _little(words: array[int]) -> array[int]:
    """Words of this machine's byte order as little-endian ones, or the other way round."""
    if sys.byteorder == "big":
        words.byteswap()
    return words


def _read_flag(reader: _Reader, words: Sequence[int], at: int) -> bool:
    if words[at] not in (0, 1):
        raise FormatError(f"{words[at]}, expected 0 or 1")
    return words[at] == 1


def _read_none(reader: _Reader, words: Sequence[int], at: int) -> None:
    if words[at]:
        raise FormatError(f"{words[at]}, expected 0")


_SIMPLE = {
    "int": _Type("int", 1, lambda writer, value: [value],
                 lambda reader, words, at: words[at]),
    "bool": _Type("bool", 1, lambda writer, value: [int(value)], _read_flag),
    "float": _Type("float", 1, lambda writer, value: list(_WORD.unpack(_FLOAT.pack(value))),
                   lambda reader, words, at: _FLOAT.unpack(_WORD.pack(words[at]))[0]),
    "str": _Type("str", 2, lambda writer, value: writer.text(value),
                 lambda reader, words, at: reader.text(words[at], words[at + 1]), False),
    "None": _Type("None", 1, lambda writer, value: [0], _read_none),
}
