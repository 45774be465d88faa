"""The codes of vkrt.h for exceptions, the most specific class first."""

from __future__ import annotations

from vkrt import errors


class CapacityError(errors.VkrtError):
    """The caller's memory is too small for a result."""


CODES = (
    (errors.ClosedError, 2),
    (errors.InputError, 3),
    (CapacityError, 4),
    (errors.FormatError, 5),
    (errors.UnsupportedError, 6),
    (errors.StateError, 14),
    (errors.CancelledError, 15),
    (errors.LoaderError, 9),
    (errors.ForkedError, 13),
    (errors.DeviceLostError, 12),
    (errors.DeviceMemoryError, 11),
    (errors.VulkanError, 10),
    (MemoryError, 8),
    (OSError, 7),
)
INTERNAL = 16


def code_of(error: BaseException) -> int:
    """The code of an exception; INTERNAL for one that nobody expects, which is a bug."""
    return next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL)


def text_of(error: BaseException) -> str:
    """The message about an exception."""
    if code_of(error) != INTERNAL:
        return str(error) or type(error).__name__
    import traceback  # a bug's place is worth more than its words

    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({place[0].filename}:{place[0].lineno})" if place else ""
    return f"{type(error).__name__}: {error}{where}"
