"""ExecuTorch's runtime in this process: its release, and its functions."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from vkrt.errors import UnsupportedError, VkrtError, missing_package

# The first and the last release that were tested
TESTED = (1, 4, 0), (1, 5, 1)
ANY_VERSION = "VKRT_EXECUTORCH_ANY_VERSION"

# The extension module that holds the runtime, or leads to it: from 1.5 on, and before
_MODULES = ("executorch.extension.pybindings._C", "executorch.extension.pybindings._portable_lib")

# The mangled names of its functions
_REGISTER = "_ZN10executorch7runtime16register_backendERKNS0_7BackendE"
_FIND = "_ZN10executorch7runtime17get_backend_classEPKc"
_RESIZE = ("_ZN10executorch7runtime8internal18resize_tensor_implEPNS0_7etensor10TensorImplE"
           "NS0_8ArrayRefIiEE")


class Runtime(NamedTuple):
    """Addresses of the runtime's functions."""

    register_backend: int
    get_backend_class: int
    resize_tensor_impl: int


def find_runtime() -> Runtime:
    """Imports ExecuTorch and finds its runtime.

    Raises:
        UnsupportedError: it is a release that was not tested; PackageError: not installed.
        VkrtError: it does not have the functions.
    """
    check_version(installed_version())
    import_module("executorch.extension.pybindings.portable_lib")
    module = next((sys.modules[name] for name in _MODULES if name in sys.modules), None)
    if module is None or not getattr(module, "__file__", None):
        raise VkrtError(f"ExecuTorch has none of the modules {', '.join(_MODULES)}, in which its "
                        "runtime is; was it built without them?")
    return functions_of(str(module.__file__))


def functions_of(library: str) -> Runtime:
    """The functions in a loaded library, or in those it was linked with (VkrtError: it is not
    loaded, or has not all of them)."""
    try:
        opened = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        return Runtime(*(ctypes.cast(opened[name], ctypes.c_void_p).value or 0
                         for name in (_REGISTER, _FIND, _RESIZE)))
    except (OSError, AttributeError) as error:
        raise VkrtError(f"{library} is not a runtime of ExecuTorch that vkrt knows: {error}"
                        ) from error


def installed_version() -> str:
    """The release of ExecuTorch that is installed (PackageError: none is)."""
    try:
        return version("executorch")
    except PackageNotFoundError:
        raise missing_package("executorch", "vkrt as its backend", "executorch") from None


def check_version(release: str) -> None:
    """Raises UnsupportedError for a release that was not tested, unless the user insists."""
    match = re.match(r"(\d+)\.(\d+)\.?(\d*)", release)
    numbers = tuple(int(number or 0) for number in match.groups()) if match else ()
    if TESTED[0] <= numbers <= TESTED[1] or os.environ.get(ANY_VERSION) == "1":
        return
    first, last = (".".join(map(str, numbers)) for numbers in TESTED)
    raise UnsupportedError(f"ExecuTorch {release} was not tested with this release of vkrt, and "
                           f"its memory layouts may differ, which would crash: expected {first} "
                           f"to {last}. {ANY_VERSION}=1 tries it all the same")
