from collections.abc import Callable
from typing import Any

from vkrt.memory.source import Source

SPACE: int

class FetchedSource(Source):
    def __init__(self, fetch: Callable[[str], Any], name: str) -> None: ...
    def place(self, key: str) -> int: ...
