"""How much of vkrt's code runs in a call, counted in lines: what a walk visits, whatever the
machine is doing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import vkrt

ROOT = str(Path(vkrt.__file__).parent)


def lines_run(call: Callable[[], Any]) -> Counter[str]:
    """How many lines of Python each file of vkrt runs in a call, by the file's path in the package.
    Every turn of a loop or of a comprehension counts."""
    found: Counter[str] = Counter()
    names: dict[str, str] = {}

    def enter(frame: FrameType, _event: str, _arg: Any) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if path not in names:
            names[path] = path[len(ROOT) + 1:] if path.startswith(ROOT) else ""
        name = names[path]
        if not name:
            return None

        def step(_frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
            found[name] += event == "line"
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return found


def calls_of(owner: Any, name: str, monkeypatch: Any) -> list[tuple[Any, ...]]:
    """The arguments of each call of a function from now on."""
    calls: list[tuple[Any, ...]] = []
    original = getattr(owner, name)

    def noted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return original(*args, **options)

    monkeypatch.setattr(owner, name, noted)
    return calls
