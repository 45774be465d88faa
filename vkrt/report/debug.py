"""One dial for what vkrt says about itself on stderr: the environment variable VKRT_DEBUG.

    1  the device, and the memory plan of every method that is loaded
    2  also the phases as they pass, with their times
    3  also every node of the graph
    4  also every record of the work list
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from vkrt.hints import Any

_START = time.perf_counter()
# Who is told instead, from which level on
_listener: tuple[Callable[[int, str], None], int] | None = None


def send_to(listener: Callable[[int, str], None] | None, at: int = 0) -> None:
    """Gives the lines up to a level to a function, in whichever thread they come up; stderr then
    gets none. None ends that."""
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


def describe(graph: Any, work: Any, plan: Any) -> None:
    """Says what a method became."""
    if level() < 1:
        return
    say(1, f"method '{graph.name}', storage {work.storage}")
    for line in plan.describe().splitlines():
        say(1, f"  {line}")
    for index, node in enumerate(graph.nodes):
        outs = ", ".join(map(repr, node.outs))
        say(3, f"  node {index} {node}: {list(node.tensors())} -> {outs}")
    for step in work.steps:
        name = getattr(step, "shader", None) or step.kernel
        groups = getattr(step, "groups", "")
        say(4, f"  node {step.node} {name} {groups} "
               f"writes {[_operand(o) for o in step.writes]} "
               f"reads {[_operand(o) for o in step.reads]}")


def _operand(operand: Any) -> str:
    layout = "raw" if operand.raw else "".join(map(str, operand.order))
    return f"#{operand.storage.id} {operand.dtype}{list(operand.sizes)} {layout}"
