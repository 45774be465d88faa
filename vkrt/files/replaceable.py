"""Which files vkrt writes over: files of the kind that it writes there, and empty ones. A new file
is there whole or not at all.

A mistyped name may well be the name of a photo or of a program.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from vkrt.errors import InputError

# So many bytes of a file show what it is.
HEAD_BYTES = 256


def is_replaceable(path: str | os.PathLike[str], is_such: Callable[[bytes], bool], *,
                   renames: bool = True) -> bool:
    """Whether a file may be written over: there is none, it is empty, or it is of the right kind.

    Args:
        is_such: whether a file that begins with these bytes is one of the kind to be written.
        renames: whether the new file takes the name of the old one. It would replace a device or a
            pipe too, which is then refused; else these are written to as they are.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return not renames
        head = os.read(descriptor, HEAD_BYTES)
    finally:
        os.close(descriptor)
    return not head or is_such(head)


def check_replaceable(path: str | os.PathLike[str], is_such: Callable[[bytes], bool], what: str,
                      option: str = "", *, renames: bool = True) -> None:
    """Refuses to write over another kind of file; see `is_replaceable`.

    Args:
        what: the kind, in words: "a pipeline cache of vkrt".
        option: the argument that named the file, for the message.

    Raises:
        InputError: the file is another one.
        OSError: it cannot be read.
    """
    if not is_replaceable(path, is_such, renames=renames):
        raise InputError(f"{option or os.fspath(path)}: a file is there that is not {what}, and is "
                         "not written over; name another file, or remove this one")


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write to, which takes the name at the end if all goes well. If not, nothing is left
    of it, and a file that was there stays. A device or a pipe is written to as it is.

    Args:
        mode: of a new file, less what the umask takes away; a file that was there keeps its own.

    Raises:
        OSError: it cannot be written, with its name.
    """
    target = os.path.realpath(path)  # a link goes on leading to it
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}-{os.urandom(4).hex()}.tmp")
    try:
        try:
            status = os.stat(target)
        except FileNotFoundError:
            status = None
        if status is not None and not stat.S_ISREG(status.st_mode):
            with open(target, "wb") as file:
                yield file
            return
        try:
            with open(temporary, "xb",
                      opener=lambda name, flags: os.open(name, flags, mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if status is not None:
                os.chmod(temporary, stat.S_IMODE(status.st_mode))
            os.replace(temporary, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        if error.errno is None:  # numpy's, which would not show a name either
            raise OSError(f"{os.fspath(path)}: {error}") from error
        if error.filename in (None, temporary):  # errors of writing have none
            error.filename = os.fspath(path)
        raise
