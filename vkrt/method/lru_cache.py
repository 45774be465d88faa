"""LruCache: values by key; the least recently used are removed when all take too many bytes.

A signal handler may raise anywhere (Ctrl-C), so each change is one operation of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from vkrt.runtime.external import LEAST

Key = TypeVar("Key")
Value = TypeVar("Value")


class _Entry(Generic[Value]):
    """A value, its bytes, and its last use, as the number of that use of the cache."""

    __slots__ = ("nbytes", "used", "value")

    def __init__(self, value: Value, nbytes: int, used: int):
        self.value = value
        self.nbytes = nbytes
        self.used = used


class LruCache(Generic[Key, Value]):
    """A cache whose values take `max_bytes` together; `LEAST` of them may take more."""

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes
        self._entries: dict[Key, _Entry[Value]] = {}
        self._uses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Key, Value]]:
        """A snapshot of the keys and values, the least recently used first."""
        return iter([(key, entry.value) for key, entry in self._by_use()])

    def _by_use(self) -> list[tuple[Key, _Entry[Value]]]:
        return sorted(self._entries.items(), key=lambda item: item[1].used)

    def get(self, key: Key) -> Value | None:
        """The value of a key, which becomes the most recently used; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = self._uses = self._uses + 1
        return entry.value

    def excess(self, nbytes: int) -> list[tuple[Key, Value]]:
        """The keys and values that have to be removed before a value of `nbytes` is added."""
        total = nbytes + sum([entry.nbytes for entry in self._entries.values()])
        count = len(self._entries) + 1
        result = []
        for key, entry in self._by_use():
            if count <= LEAST or total <= self.max_bytes:
                break
            result.append((key, entry.value))
            total -= entry.nbytes
            count -= 1
        return result

    def add(self, key: Key, value: Value, nbytes: int) -> None:
        self._uses += 1
        self._entries[key] = _Entry(value, nbytes, self._uses)

    def remove(self, key: Key) -> None:
        del self._entries[key]
