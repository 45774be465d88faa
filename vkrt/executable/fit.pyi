from collections.abc import Callable, Mapping
from typing import Any

from vkrt.executable.flat import File
from vkrt.work.tensor import Storage

def fit(file: File, target: int, method: int, limits: Mapping[str, Any], unified: bool,
        max_loops: int | None, requirements: Callable[[Storage], tuple[int, int, int]],
        ) -> list[tuple[int, ...]]: ...
