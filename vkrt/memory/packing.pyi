from collections.abc import Sequence
from typing import Final

class Packing:
    def __init__(self, params: Sequence[int], itemsize: int, rows: int = 1) -> None: ...
    source_bytes: Final[int]
    target_bytes: Final[int]
    rows: Final[int]
    row_bytes: Final[int]
    is_copy: Final[bool]
