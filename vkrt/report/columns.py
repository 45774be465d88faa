"""Columns: tables for people, every column as wide as what is in it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def columns(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """The rows as lines of text, columns two blanks apart.

    Args:
        rows: the header's too; all of one length.
        left: the columns that are aligned to the left, as names are; the others are to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) if index in left else cell.rjust(width)
                      for index, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in rows]


def byte_lines(rows: Iterable[tuple[str, int]], always: Container[str]) -> list[str]:
    """Bytes by name as lines of text; where they are 0, only the names in `always`."""
    return [f"{name:<16}{nbytes:>14,} B{nbytes / 1e6:>10.2f} MB"
            for name, nbytes in rows if nbytes or name in always]
