"""Modules that are imported when something of them is first used.

numpy takes as long to import as all of vkrt, and a host in C may never need it: arrays are a matter
of Python's users, of kernels on the host and of 64-bit numbers. Regular expressions and JSON take
half as long as Python itself takes to start, and are for what users write.
"""

from __future__ import annotations

from importlib import import_module

from vkrt.hints import TYPE_CHECKING, Any


class Late:
    """Stands for a module that is not imported yet.

    Args:
        name: of the module.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


numpy: Any = Late("numpy")

if TYPE_CHECKING:
    import json as json
    import re as re
else:
    json, re = Late("json"), Late("re")
