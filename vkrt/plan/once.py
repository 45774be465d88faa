"""Answers that are shared by the plans that are compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Once(Generic[Answer]):
    """Answers that are found once for each key inside of `with once():`, and anew outside of it."""

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
        """The result of `find`, now or from an earlier call with the same key."""
        answers = self._answers.get()
        if answers is None:
            return find()
        if key not in answers:
            answers[key] = find()
        return answers[key]
