"""Files of caches: what is read decides what a device does, so nobody else may have written it.

A folder is used where it belongs to this user or to root and only they can change what is in it;
one with the sticky bit (/tmp) will do, in which nobody changes what belongs to others. A file is
read where it belongs to this user or to root, and only its owner can write it. The last part of a
path may not be a symbolic link, of the folder nor of the file. What does not fit is as if it were
not there.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress

from vkrt.replaceable import is_replaceable

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read(path: str | os.PathLike[str], limit: int) -> bytes | None:
    """The bytes of a private file; None where there is none, or one of more than `limit` bytes."""
    folder, name = os.path.split(os.fspath(path))
    try:
        directory = _open_folder(folder)
        try:
            # A pipe would keep whoever opens it waiting.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                                 dir_fd=directory)
        finally:
            os.close(directory)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if (not stat.S_ISREG(status.st_mode) or not _is_ours(status)
                    or status.st_mode & WRITABLE_BY_OTHERS):
                return None
            # One byte more than there may be shows a file that is too long.
            data = file.read(limit + 1)
    except OSError:
        return None
    return data if len(data) <= limit else None


def put(path: str | os.PathLike[str], *parts: bytes, magic: bytes = b"") -> bool:
    """Makes a private file of these bytes, in the place of one that is there, whole or not at all.

    What earlier writers of this file were killed over goes, too.

    Args:
        magic: what a file that is there has to begin with, unless it is empty.

    Returns:
        Whether it could. The folder is made if it is not there.
    """
    folder, name = os.path.split(os.fspath(path))
    start = f".{name[:100]}"
    temporary = f"{start}-{os.getpid()}-{threading.get_ident()}"
    try:
        os.makedirs(folder or os.curdir, mode=0o700, exist_ok=True)
        directory = _open_folder(folder)
        try:
            if magic and not is_replaceable(path, lambda head: head.startswith(magic)):
                return False
            _sweep(folder, start)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                                 0o600, dir_fd=directory)
            try:
                with open(descriptor, "wb") as file:
                    file.writelines(parts)
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                raise
        finally:
            os.close(directory)
    except OSError:
        return False
    return True


def prune(folder: str | os.PathLike[str], keep: str, suffix: str, max_bytes: int) -> None:
    """Removes the files of a kind that were written longest ago, all but `keep`, until `max_bytes`
    are left, and what was never finished."""
    try:
        _sweep(folder, suffix)
        with os.scandir(folder or os.curdir) as entries:
            found = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in entries
                     if entry.name.endswith(suffix) and entry.name != os.path.basename(keep)]
        total = sum(size for _, size, _ in found) + os.stat(keep).st_size
        for _, size, path in sorted(found):
            if total <= max_bytes:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
    except OSError:  # another process tidies up as well
        return


def _sweep(folder: str | os.PathLike[str], part: str) -> None:
    """Removes what processes that were killed had not finished writing: files of the names that
    `put` makes, with `part` before the number of the process."""
    for name in os.listdir(folder or os.curdir):
        writer = name.rpartition("-")[0].rpartition(f"{part}-")[2]
        if name.startswith(".") and writer.isdecimal():
            try:
                os.kill(int(writer), 0)
            except ProcessLookupError:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name))
            except (OSError, OverflowError):
                pass  # somebody else's, or the number of no process


def _open_folder(path: str) -> int:
    """A descriptor of a folder that only this user and root change; OSError where it is another."""
    descriptor = os.open(path or os.curdir,
                         os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if _is_ours(status) and (not status.st_mode & WRITABLE_BY_OTHERS
                             or status.st_mode & stat.S_ISVTX):
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"others can change what is in {path or os.curdir}")


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)
