"""Answers that plans which are compared have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Once(Generic[Answer]):
    """Answers that are found once for each key within a `with` of a call, and anew outside."""

    def __init__(self, name: str):
        self._answers: ContextVar[dict[Hashable, Answer] | None] = ContextVar(name, default=None)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        token = self._answers.set({})
        try:
            yield
        finally:
            self._answers.reset(token)

    def answer(self, key: Hashable, find: Callable[[], Answer]) -> Answer:
        """What `find` gives, now or for the same key before."""
        answers = self._answers.get()
        if answers is None:
            return find()
        if key not in answers:
            answers[key] = find()
        return answers[key]
