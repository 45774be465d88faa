"""Measurements in processes of their own: what one leaves behind must not count in another."""

from __future__ import annotations

import json
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


def measure(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a tool's function returns in a process of its own."""
    path = Path(function.__code__.co_filename)
    done = subprocess.run([sys.executable, "-c", CHILD, str(path.parent), path.stem,
                           function.__name__, json.dumps(arguments)],
                          stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{function.__name__}{arguments} failed with exit code {done.returncode}")
    return json.loads(done.stdout)
