"""Measurements in processes of their own: what one leaves behind must not count in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHILD = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
function = getattr(importlib.import_module(sys.argv[2]), sys.argv[3])
print(json.dumps(function(*json.loads(sys.argv[4]))))
"""


class Failed(Exception):
    """A process did not give a result; the message says how it ended."""


def command(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The command that prints what a tool's function returns, as JSON."""
    path = Path(function.__code__.co_filename)
    return [sys.executable, "-c", CHILD, str(path.parent), path.stem, function.__name__,
            json.dumps(arguments)]


def attempt(function: Callable[..., Any], *arguments: Any, variables: dict[str, str] | None = None,
            limit: float | None = None) -> Any:
    """What a tool's function returns in a process of its own, with these variables of the
    environment (default: this one's); `Failed` where it returns nothing within `limit` seconds."""
    what = f"{function.__name__}{arguments}"
    try:
        done = subprocess.run(command(function, *arguments), env=variables,
                              stdout=subprocess.PIPE, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{what} had no end after {limit} s") from None
    if done.returncode:
        raise Failed(f"{what} failed with exit code {done.returncode}")
    return json.loads(done.stdout)


def measure(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a tool's function returns in a process of its own; ends this one if it fails."""
    try:
        return attempt(function, *arguments)
    except Failed as error:
        raise SystemExit(str(error)) from None


def with_caches(folder: Path) -> dict[str, str]:
    """The environment of this process with the shader caches of drivers, and of vkrt, below a
    folder; cold ones if it is empty."""
    found = {key: value for key, value in os.environ.items() if key != "MESA_SHADER_CACHE_DISABLE"}
    for variable in ("XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH"):
        found[variable] = str(folder / variable.strip("_").lower())
        Path(found[variable]).mkdir(parents=True, exist_ok=True)
    return found
