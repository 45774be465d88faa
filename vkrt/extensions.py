"""Extension modules: those of a room are linked into one shared object, and are found in it.

Each is a module of its own for Python and Cython: the shared object has an init function for
every one of them, which the usual loader of extension modules looks up by the module's name.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType

# Room -> the module after which its shared object is named
SHARED_OBJECTS = {f"vkrt.{room}": f"vkrt.{room}._{room}" for room in ("memory", "runtime", "vk")}


class _Finder:
    """Finds what no other finder does: a module of a room without a file of its own."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None,
                  ) -> ModuleSpec | None:
        shared_object = SHARED_OBJECTS.get(name.rpartition(".")[0])
        if shared_object is None or name == shared_object:
            return None
        # Asked of the other finders: in an editable install it lies elsewhere than the room.
        for finder in sys.meta_path:
            found = finder.find_spec(shared_object, path)  # type: ignore[arg-type]
            if found is not None and found.origin is not None:
                spec = ModuleSpec(name, ExtensionFileLoader(name, found.origin),
                                  origin=found.origin)
                spec.has_location = True
                return spec
        return None


def install() -> None:
    """Lets the import system find the extension modules; may be called twice."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
