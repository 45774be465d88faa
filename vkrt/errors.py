"""The exceptions of vkrt. Every one derives from `VkrtError` and from the built-in it specializes.

This module imports nothing, so that every module may import it.
"""


# Characters of a message at most: a file may hold lists of any length, which messages quote
MOST_CHARACTERS = 8000


def shortened(text, most=MOST_CHARACTERS):
    """A text of at most `most` characters, which says how many are left out of its middle."""
    if len(text) <= most:
        return text
    kept = max(most - 50, 2)
    return (f"{text[:kept - kept // 4]} [{len(text) - kept:,} characters are left out] "
            f"{text[len(text) - kept // 4:]}")


class VkrtError(Exception):
    """Base of everything that vkrt raises on purpose."""

    def __init__(self, *args):
        super().__init__(*(shortened(arg) if isinstance(arg, str) else arg for arg in args))


class FormatError(VkrtError, ValueError):
    """A byte of a `.pte` (or `.ptd`) file is not what the format allows.

    The message names the table and field, the offset in the file, what was expected and what was
    found.
    """


class InternalError(VkrtError, RuntimeError):
    """A fault of vkrt's own, whatever the program file says: please report it with the text."""


class UnsupportedError(VkrtError, NotImplementedError):
    """The program or the device asks for something vkrt does not do.

    For programs the message lists every missing operator with its count, not only the first.
    """


class PackageError(UnsupportedError, ImportError):
    """Something that the call needs is not installed: an optional package, or vkrt itself where its
    source folder was imported."""


def missing_package(package, what, extra=""):
    """The error of a feature that needs an optional package.

    Args:
        what: the feature, in words: "reading pictures".
        extra: the extra of vkrt that brings the package.
    """
    how = f"pip install '.[{extra}]' in vkrt's folder" if extra else f"pip install {package}"
    return PackageError(f"{what} needs the package {package}, which is not installed: {how}")


class InputError(VkrtError, ValueError):
    """An argument of a call does not fit the method: wrong count, dtype, rank or size."""


class StateError(VkrtError, RuntimeError):
    """A failed run has left a method's state half changed: it has to be reset or loaded."""


class ClosedError(VkrtError, ValueError):
    """A closed object is used: a program, a method, a device, or something that belongs to one."""


class CancelledError(VkrtError, RuntimeError):
    """Another thread has ended the run, by `cancel` of a program or a method."""


class VulkanError(VkrtError, RuntimeError):
    """A Vulkan call failed.

    Attributes:
        result: the VkResult as an int (negative).
        call: the name of the Vulkan function.
        node: which node of the program was being prepared or run, or None.
    """

    def __init__(self, message: str, result: int = 0, call: str = "", node: str | None = None):
        super().__init__(message)
        self.result = result
        self.call = call
        self.node = node


class DeviceMemoryError(VulkanError, MemoryError):
    """Device memory ran out. Everything the failed step had allocated has been released.

    Attributes:
        asked: bytes of the allocation that failed.
        heap: index of the heap it was asked of.
        budget: bytes the driver grants this process on that heap.
        in_use: bytes vkrt held on that heap when the allocation failed.
        breakdown: the memory plan as a dict of bytes, where one exists.
    """

    def __init__(self, message: str, result: int = 0, call: str = "", node: str | None = None, *,
                 asked: int = 0, heap: int = 0, budget: int = 0, in_use: int = 0,
                 breakdown: dict[str, int] | None = None):
        super().__init__(message, result, call, node)
        self.asked = asked
        self.heap = heap
        self.budget = budget
        self.in_use = in_use
        self.breakdown = breakdown or {}


class PipelineError(VulkanError):
    """The driver does not compile a shader.

    Attributes:
        shaders: names of the variants that it refused, the one that the message names first.
    """

    def __init__(self, message: str, result: int = 0, call: str = "", node: str | None = None, *,
                 shaders: tuple[str, ...] = ()):
        super().__init__(message, result, call, node)
        self.shaders = tuple(shaders)


class DeviceLostError(VulkanError):
    """The device was lost (driver reset or crash), or vkrt gave it up: nobody can tell when its
    work is done, because waits fail or a signal that it waits for fails. What it may still use
    stays allocated ("abandoned" in `vkrt.vk.live_objects`). The program has to be loaded again."""


class ForkedError(DeviceLostError):
    """A device, or a program on it, was used in a child process that was forked after the device
    was opened. It is lost in the child and goes on in the parent. Load it after the fork."""


class LoaderError(VulkanError, OSError):
    """The Vulkan library or a driver could not be opened; says which paths were tried."""
