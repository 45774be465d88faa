"""JSON of vkrt's own files, read without the standard library's package.

What reads it there is a module in C; the package around it imports regular expressions for those
who have no such module. It is imported where there is something to complain about.
"""

from __future__ import annotations

from functools import cache

from vkrt.hints import Any
from vkrt.late import json


class _Settings:
    """What the module in C asks for; the standard library's defaults."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    # Infinity and NaN, which are no JSON; what this raises is caught below.
    parse_constant = None


@cache
def _scanner() -> Any:
    try:
        from _json import make_scanner

        return make_scanner(_Settings)  # type: ignore[arg-type]
    except (ImportError, AttributeError):  # an interpreter without it, or where it asks for more
        return None


def loads(text: str | bytes) -> Any:
    """What a text of JSON says.

    Raises:
        ValueError: it is none.
        RecursionError: it is too deep.
    """
    scan = _scanner()
    if scan is not None:
        try:
            stripped = (text if isinstance(text, str) else text.decode()).strip(" \t\n\r")
            value, end = scan(stripped, 0)
            if end == len(stripped):
                return value
        except (ValueError, TypeError, StopIteration):
            pass  # said better by the package, which reads what this does not as well
    return json.loads(text)
