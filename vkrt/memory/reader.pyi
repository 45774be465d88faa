from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Final

from vkrt.memory.packing import Packing
from vkrt.memory.source import Source

DEFAULT_WINDOW: int

def cache_limit() -> int: ...

class Transfer:
    def __init__(self, source: int, offset: int, nbytes: int, address: int,
                 packing: Packing | None = None, first_row: int = 0, rows: int | None = None,
                 name: str = "", room: int | None = None,
                 ) -> None: ...
    source: Final[int]
    offset: Final[int]
    nbytes: Final[int]
    packing: Final[Packing | None]
    name: Final[str]

class Reader:
    def __init__(self, sources: Sequence[Source], strategy: str = "auto",
                 window: int = ..., threads: int | None = None,
                 keep_cached: bool | None = None) -> None: ...
    strategy: Final[str]
    window: Final[int]
    threads: Final[int]
    def run(self, transfers: Iterable[Transfer]) -> None: ...
    def start_ahead(self, source: int, offset: int, nbytes: int) -> None: ...
    def statistics(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Reader: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
