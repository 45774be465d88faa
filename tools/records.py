"""Writes what the core knows of the records in files, from their classes in Python.

    python tools/records.py --write    rewrites vkrt/core/records.pxd and vkrt/core/schema.h
    python tools/records.py --check    exits 1 if they are out of date

vkrt/core/README.md says how records lie in files. The classes, their fields and the types that
these are annotated with decide the structs and the schema; the layout number stands for all of it.
"""

from __future__ import annotations

import hashlib
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path

from vkrt.executable.program import ANYTHING, ENUMS, RECORDS, UNIONS, Compiled

CORE = Path(__file__).parent.parent / "vkrt" / "core"
WRITTEN = "Written by `tools/records.py --write`, from the classes of vkrt/executable/program.py."
# Names in C of types that are no class
NAMES = {"int": "integer", "float": "number", "str": "text", "bool": "flag", "None": "nothing",
         "Any": "any", **{union: name for name, union in UNIONS.items()}}


@dataclass
class Type:
    """A type of fields.

    Attributes:
        name: as annotations have it.
        kind: "INT", "FLAG", "FLOAT", "TEXT", "NONE", "ENUM", "RECORD", "ROWS", "OPTIONAL" or
            "UNION" (see vkrt/core/flat.pxd).
        width: words of a row.
        parts: (type or None, name): fields; the type of the rows, of what is there or of the
            members of a union; the names of an enumeration.
        table: its number, 0 for none.
    """

    name: str
    kind: str
    width: int
    parts: list[tuple[Type | None, str]] = field(default_factory=list)
    table: int = 0

    @property
    def is_record(self) -> bool:
        """Whether it is a class."""
        return self.kind == "RECORD" and self.name in RECORDS

    @property
    def is_plain(self) -> bool:
        """Whether any words are such a value."""
        return (self.kind in ("INT", "FLOAT")
                or self.kind == "RECORD" and all(part.is_plain for part, _ in self.parts))

    @property
    def is_leaf(self) -> bool:
        """Whether its words refer to no table."""
        return (self.kind in ("INT", "FLOAT", "FLAG", "NONE", "ENUM")
                or self.kind in ("RECORD", "OPTIONAL") and all(p.is_leaf for p, _ in self.parts))

    @property
    def count(self) -> int:
        """How many integers it has where it is a tuple of them, else 0."""
        is_tuple = self.kind == "RECORD" and not self.is_record
        return len(self.parts) if is_tuple else 0


class Schema:
    """All types of a file whose outermost record is a `Compiled`, in the order in which they are
    met, and those of them that have tables."""

    def __init__(self) -> None:
        self.types: list[Type] = []
        self.tables: list[Type] = []
        self._known: dict[str, Type] = {}
        self._with_table(Compiled.__name__)

    def _with_table(self, name: str) -> Type:
        found = self._type(name)
        if not found.table:
            self.tables.append(found)
            found.table = len(self.tables)
        return found

    def _type(self, name: str) -> Type:
        """The type that an annotation names."""
        name = UNIONS.get(name, name)
        if name not in self._known:
            made = Type(name, *self._kind_of(name))
            self._known[name] = made
            self.types.append(made)
            self._complete(made)
        return self._known[name]

    @staticmethod
    def _kind_of(name: str) -> tuple[str, int]:
        """The kind, and the width where that does not follow from its parts."""
        simple = {"int": "INT", "bool": "FLAG", "float": "FLOAT", "None": "NONE"}
        if name in simple:
            return simple[name], 1
        if name == "str":
            return "TEXT", 2
        if name in ENUMS:
            return "ENUM", 1
        if name.endswith(" | None"):
            return "OPTIONAL", 0
        if name in RECORDS or name.startswith("tuple[") and not name.endswith(", ...]"):
            return "RECORD", 0
        return ("ROWS" if name.startswith("tuple[") else "UNION"), 2

    def _complete(self, made: Type) -> None:
        name = made.name
        if made.kind == "ENUM":
            made.parts = [(None, word) for word in ENUMS[name]]
        elif made.kind == "RECORD":
            declared = (annotations_of(RECORDS[name]) if name in RECORDS else
                        {str(k): part for k, part in enumerate(name[6:-1].split(", "))})
            made.parts = [(self._type(part), word) for word, part in declared.items()]
            made.width = sum(part.width for part, _ in made.parts if part is not None)
        elif made.kind == "OPTIONAL":
            inner = self._type(name.removesuffix(" | None"))
            made.parts, made.width = [(inner, "")], 1 + inner.width
        elif made.kind == "ROWS":
            made.parts = [(self._with_table(element_of(name)), "")]
        elif made.kind == "UNION":
            members = ANYTHING if name == "Any" else name.split(" | ")
            if not all(member in RECORDS or name == "Any" for member in members):
                raise AssertionError(f"{name} is no type of a flat file")
            made.parts = [(self._with_table(member), snake(member)) for member in members]

    @property
    def layout(self) -> int:
        """A number for all of it."""
        said = [(t.name, t.kind, t.width, [(p.name if p else "", n) for p, n in t.parts])
                for t in self.types]
        digest = hashlib.sha256(repr((said, [t.name for t in self.tables])).encode()).digest()
        return int.from_bytes(digest[:4], "little")


def annotations_of(cls: type) -> dict[str, str]:
    """The annotations of a class's fields, in order."""
    if issubclass(cls, tuple):
        # A named tuple keeps the text of an annotation as a reference.
        return {name: note.__forward_arg__ for name, note in cls.__annotations__.items()}
    notes: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        notes |= base.__dict__.get("__annotations__", {})
    return {found.name: notes[found.name] for found in fields(cls)}


def element_of(name: str) -> str:
    """The type of the values in a tuple of any length."""
    return name.removeprefix("tuple[").removesuffix(", ...]")


def snake(name: str) -> str:
    """A name in C for a type, such as dispatch_command."""
    name = UNIONS.get(name, name)
    if name in NAMES:
        name = NAMES[name]
    if name.endswith(" | None"):
        return "maybe_" + snake(name.removesuffix(" | None"))
    if name.endswith(", ...]"):
        return snake(element_of(name)) + "_rows"
    if name.startswith("tuple["):
        return f"integers_{name.count(',') + 1}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def camel(name: str) -> str:
    """The name of a struct, such as DispatchCommandRow."""
    return "".join(word.capitalize() for word in snake(name).split("_")) + "Row"


def type_of(kind: Type) -> str:
    """The type in Cython of a field."""
    simple = {"INT": "int64_t", "FLAG": "int64_t", "ENUM": "int64_t", "NONE": "int64_t",
              "FLOAT": "double", "TEXT": "Text", "ROWS": "Rows", "UNION": "Member"}
    if kind.count:
        return f"int64_t[{kind.count}]"
    return simple.get(kind.kind) or camel(kind.name)


def structs(schema: Schema) -> str:
    """vkrt/core/records.pxd."""
    tables = ["TABLE_TEXTS", *(f"TABLE_{snake(kind.name).upper()}" for kind in schema.tables)]
    lines = ['"""The records of files as structs: rows of tables.', "", WRITTEN, '"""', "",
             "from libc.stdint cimport int64_t", "", "cdef enum:",
             f"    LAYOUT = {schema.layout:#x}", f"    TABLES = {len(tables)}",
             f"    TYPES = {len(schema.types)}", "", "cdef enum:", *packed("", tables), ""]
    for kind in schema.types:
        if kind.kind in ("ENUM", "UNION"):
            prefix = snake(kind.name).upper()
            lines += ["cdef enum:", *packed("", [
                f"{prefix}_{short(word, prefix)}" for _, word in kind.parts]), ""]
    for comment, name, fields_ in (
            ("Bytes of the texts", "Text", "first, count"),
            ("Rows of a table that follow one another", "Rows", "first, count"),
            ("Which member of a union, and its row", "Member", "which, row")):
        lines += [f"# {comment}", f"cdef struct {name}:", f"    int64_t {fields_}", ""]
    done: set[str] = set()
    for kind in schema.types:
        lines += struct_of(kind, done)
    lines += ["# The tables of a file", "cdef struct Records:", "    const char* texts",
              "    int64_t[TABLES] counts  # bytes of texts, then rows of each table",
              *(f"    const {row_of(kind)}* {snake(kind.name)}" for kind in schema.tables)]
    return "\n".join(lines) + "\n"


def packed(start: str, words: Iterable[str]) -> list[str]:
    """Lines that begin with `start` and name words, with commas between them."""
    lines = textwrap.wrap(", ".join(words), 100, initial_indent=f"    {start}",
                          subsequent_indent=f"    {start}")
    return [line.removesuffix(",") for line in lines]


def short(word: str, prefix: str) -> str:
    """The name of a member without the union's name at its end."""
    return word.upper().removesuffix("_" + prefix)


def row_of(kind: Type) -> str:
    """The type in Cython of a table's rows."""
    return camel(kind.name) if kind.count else type_of(kind)


def struct_of(kind: Type, done: set[str]) -> Sequence[str]:
    """The struct of a type, behind those that it has in it."""
    if kind.name in done or not (kind.kind == "OPTIONAL" or kind.kind == "RECORD"):
        return []
    done.add(kind.name)
    lines = [line for part, _ in kind.parts if part is not None for line in struct_of(part, done)]
    lines.append(f"cdef struct {camel(kind.name)}:")
    if kind.count:
        lines.append(f"    int64_t[{kind.count}] items")
    elif kind.kind == "OPTIONAL":
        lines += ["    int64_t is_there", f"    {type_of(part_of(kind))} value"]
    else:
        declared = [(type_of(part), name) for part, name in kind.parts if part is not None]
        for named, group in groupby(declared, lambda field: field[0]):
            lines += packed(f"{named} ", [name for _, name in group])
    return [*lines, ""]


def part_of(kind: Type) -> Type:
    """The only part of a type."""
    (part, _), = kind.parts
    assert part is not None
    return part


def data(schema: Schema) -> str:
    """vkrt/core/schema.h."""
    parts: list[str] = []
    places, count = {}, 0
    for kind in schema.types:
        places[kind.name] = count
        count += len(kind.parts)
        parts += textwrap.wrap(" ".join(
            f'{{{-1 if part is None else schema.types.index(part)},"{name}"}},'
            for part, name in kind.parts), 96)
    types = [f'{{"{kind.name}", VKRT_{kind.kind}, {kind.width}, {kind.table}, '
             f"{places[kind.name]}, {len(kind.parts)}, {int(kind.is_plain)}, {int(kind.is_leaf)}}},"
             for kind in schema.types]
    tables = ", ".join(["-1", *(str(schema.types.index(kind)) for kind in schema.tables)])
    return "\n".join((
        f"/* What lies in the words of files: for vkrt/core/flat.pyx. {WRITTEN} */", "",
        "static const VkrtPart vkrt_parts[] = {", *(f"    {part}" for part in parts), "};",
        "static const VkrtType vkrt_types[] = {", *(f"    {kind}" for kind in types), "};",
        "static const int vkrt_tables[] = {" + tables + "};", ""))


def main() -> int:
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    schema = Schema()
    stale = False
    for name, text in (("records.pxd", structs(schema)), ("schema.h", data(schema))):
        path = CORE / name
        if not path.exists() or path.read_text() != text:
            stale = True
            if sys.argv[1] == "--write":
                path.write_text(text)
    if stale and sys.argv[1] == "--check":
        print("vkrt/core/records.pxd, schema.h: out of date; run tools/records.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
