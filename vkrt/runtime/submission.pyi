from typing import Any

UNFINISHED: set[Any]
