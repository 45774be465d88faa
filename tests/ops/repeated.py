"""Random networks whose nodes read one tensor in several places: the same operand twice or three
times, views of one tensor, a tensor as weight and input, one constant in several nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from networks import Network


def repeating(make: Callable[..., Network]) -> Callable[..., Network]:
    """A maker of networks in which nodes repeat operands."""
    @functools.wraps(make)
    def made(seed: int, *args: Any) -> Network:
        with repeats(Random(f"operands {seed}")):
            return make(seed, *args)

    made.__name__ = f"{make.__name__}_repeated"
    return made


@contextmanager
def repeats(chance: Random) -> Iterator[None]:
    """Networks that are made within repeat operands where a chance says so."""
    Network.repeats = chance
    try:
        yield
    finally:
        Network.repeats = None
