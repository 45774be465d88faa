"""A region of a file, and the one way in which this package reports wrong bytes."""


from dataclasses import dataclass
from typing import NoReturn

from vkrt.errors import FormatError


def show(value: object) -> str:
    """`value` as text for a message, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def fail(what: str, offset: int, expected: str, got: object) -> NoReturn:
    """Raise FormatError. `what` is "Table.field"; `offset` counts from the start of the file."""
    found = got if isinstance(got, str) else show(got)
    raise FormatError(f"{what} at file offset {offset}: expected {expected}, got {found}")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `offset .. offset + nbytes` of a file; every Span that a reader returns lies inside."""

    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        return self.offset + self.nbytes

    def part(self, offset: int, nbytes: int, what: str, at: int) -> "Span":
        """The `nbytes` bytes that start `offset` bytes into this span; the field `what` at file
        offset `at` asks for them."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            fail(what, at, f"bytes inside the {self.nbytes} at file offset {self.offset}",
                 f"{nbytes} bytes at relative offset {offset}")
        return Span(self.offset + offset, nbytes)


def byte_view(data: object) -> memoryview:
    """A flat view of unsigned bytes over bytes, mmap, memoryview .., without a copy. Readers
    release it and its parts: a view in a traceback would keep a mapping from being closed."""
    view = memoryview(data)  # type: ignore[arg-type]
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")
