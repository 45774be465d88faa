"""One dial for what vkrt says about itself on stderr: the environment variable VKRT_DEBUG.

    1  the device, and the memory plan of every method that is loaded
    2  also the phases as they pass, with their times
    3  also every node of the graph
    4  also every command
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

_START = time.perf_counter()
# Who gets the lines instead, and up to which level
_listener: tuple[Callable[[int, str], None], int] | None = None


def send_to(listener: Callable[[int, str], None] | None, at: int = 0) -> None:
    """Sends the lines up to level `at` to a function, in the thread in which they come up; stderr
    then gets none. None ends that."""
    global _listener
    _listener = None if listener is None else (listener, at)


def level() -> int:
    """The dial's position; 0 when unset or not a number."""
    if _listener is not None:
        return _listener[1]
    value = os.environ.get("VKRT_DEBUG", "0")
    return int(value) if value.isdigit() else 0


def say(at: int, text: str) -> None:
    """Says a line if the dial is at `at` or above."""
    listener = _listener
    if level() < at:
        return
    if listener is not None:
        listener[0](at, text)
    else:
        print(f"[vkrt {time.perf_counter() - _START:8.3f}] {text}", file=sys.stderr)


def describe(graph: Any, plan: Any) -> None:
    """Says what a method became; `plan` is an `Executable`, or what it was planned to."""
    if level() < 1:
        return
    say(1, f"method '{graph.name}', storage {plan.storage}")
    for line in plan.figures.describe().splitlines():
        say(1, f"  {line}")
    for index, node in enumerate(graph.nodes):
        outs = ", ".join(map(repr, node.outs))
        say(3, f"  node {index} {node}: {list(node.tensors())} -> {outs}")
    if level() < 4:
        return
    kernels = plan.execution.kernels
    for number, submission in enumerate(plan.execution.submissions):
        for command in submission.commands:
            kernel = kernels[command.kernel].shader if hasattr(command, "kernel") else ""
            say(4, f"  submission {number} {kernel} {command}")
        if submission.host is not None:
            say(4, f"  submission {number} {submission.host}")
