"""Extension modules: they are linked into one shared object, and are found in it.

Each is a module of its own for Python and Cython: the shared object has an init function for
every one of them, which the usual loader of extension modules looks up by the module's name.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from vkrt.errors import PackageError

# Package -> its extension modules, as the package's meson.build has them
MODULES = {
    "executable": "fit flat rows",
    "memory": "fetched packing reader sha256 source strategies",
    "runtime": ("compute_graph external handles host_calls map_probe pipelines "
                "state_memory streaming timed_runs unfinished weights"),
    "vk": ("batch cache_folder check device imported interruption memory "
           "memory_types messages physical pipeline pipeline_batch pipeline_cache "
           "private_file resource"),
}
# The module after which the shared object is named
SHARED_OBJECT = "vkrt._extensions"
_NAMES = {f"vkrt.{package}.{name}" for package, names in MODULES.items() for name in names.split()}


class _Finder:
    """Finds the extension modules, before the finder of an editable install, which is slow."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: ModuleType | None = None,
                  ) -> ModuleSpec | None:
        if name not in _NAMES:
            return None
        file = shared_object()
        if file is None:
            folder = os.path.dirname(__file__)
            raise PackageError(
                f"vkrt was imported from {folder}, which has its sources and not its extension "
                "modules: where vkrt is installed, run from another folder (or the command vkrt); "
                "else install it (pip install .)")
        spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        spec.has_location = True
        return spec


@cache
def shared_object() -> str | None:
    """The file of the shared object; None where there is none. In an editable install it lies
    elsewhere than the sources."""
    found = find_spec(SHARED_OBJECT)
    return None if found is None else found.origin


def install() -> None:
    """Lets the import system find the extension modules; may be called twice."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
