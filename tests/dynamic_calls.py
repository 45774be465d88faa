"""Calls of programs with dynamic shapes, and what is done for them."""

from __future__ import annotations

from support import calls_of, relative_l2

NAMES = ["conv-dyn", "attention-dyn", "masked-dyn", "numbers-dyn", "pair-dyn", "shrinking-dyn",
         "between-dyn"]


def sorted_calls(name: str):
    """The calls of a program, from small to large inputs."""
    return sorted(calls_of(name), key=lambda call: call[0][0].size)


def check(outputs, expected) -> None:
    for output, array in zip(outputs, expected, strict=True):
        assert output.shape == array.shape
        assert relative_l2(output, array) < 1e-5
