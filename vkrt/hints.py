"""Names of `typing` that only annotations use, without `typing`.

Its module, and what that imports, takes nearly as long as Python itself takes to start.
Annotations are never evaluated here (`from __future__ import annotations`), so whatever stands for
these names does not matter when a module runs; type checkers read the real ones.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import Generic as Generic
    from typing import NoReturn as NoReturn
    from typing import TextIO as TextIO
    from typing import TypeVar as TypeVar
else:
    Any = BinaryIO = NoReturn = TextIO = object

    class Generic:
        """The base of generic classes."""

        __slots__ = ()

        def __class_getitem__(cls, parameters):
            return cls

    def TypeVar(name):
        """A parameter of generic classes and functions."""
        return object
