"""Errors on their way to ExecuTorch, which knows only codes; `last_error` has the text."""

from __future__ import annotations

import _thread
import threading

from vkrt.errors import DeviceMemoryError, FormatError, InputError, StateError, UnsupportedError

# The first class that fits an exception counts; the numbers are those of ExecuTorch's `Error`.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (DeviceMemoryError, 0x31),  # DelegateMemoryAllocationFailed
    (UnsupportedError, 0x10),  # NotSupported
    (FormatError, 0x30),  # DelegateInvalidCompatibility
    (InputError, 0x12),  # InvalidArgument
    (StateError, 0x02),  # InvalidState
    (MemoryError, 0x21),  # MemoryAllocationFailed
    (OSError, 0x22),  # AccessFailed
)
_INTERNAL = 0x01

_local = threading.local()


def last_error() -> str | None:
    """The error of the last call of ExecuTorch's runtime to vkrt in this thread.

    Returns:
        The name and the message of the exception; None if that call went well, or there was none.
    """
    return getattr(_local, "text", None)


def succeeded() -> None:
    """Forgets the error of an earlier call: the next error may be the runtime's own."""
    _local.text = None


def failed(error: BaseException) -> int:
    """Keeps the exception of a call for `last_error`.

    Returns:
        The runtime's code for it.
    """
    _local.text = f"{type(error).__name__}: {error}"
    if isinstance(error, KeyboardInterrupt):
        # The runtime turns it into an error: it is raised again once the runtime has returned.
        _thread.interrupt_main()
    return next((code for kind, code in _CODES if isinstance(error, kind)), _INTERNAL)
