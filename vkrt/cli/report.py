"""The file of `vkrt doctor --report`: what a helper has to know of a system, and nothing private.

Environment variables are read by name, and only those that change what vkrt or a driver does.
Folders of the user are named without the user's name. The machine's name is nowhere.
"""

from __future__ import annotations

import os
import platform
import pwd
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata

from vkrt.errors import VkrtError
from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.version import __version__
from vkrt.vk.device import devices

FILE = "vkrt-report.txt"
MARK = "report    of vkrt doctor"
NOT_ENDED = "result    none: vkrt doctor did not come to its end"
# Packages that vkrt works with
PACKAGES = ("numpy", "torch", "executorch", "tokenizers", "sentencepiece", "jinja2", "llguidance",
            "starlette", "uvicorn", "pillow", "ray")
# Variables that change what vkrt, the Vulkan loader or a driver does; a variable whose name has one
# of the last words may hold a secret
VARIABLES = re.compile(r"(?:VK|VKRT|MESA|LP|GALLIVM|LIBGL|RADV|ANV|NVK|TU|SWIFTSHADER)_"
                       r"(?!\w*(?:KEY|TOKEN|SECRET|PASSWORD))\w+|"
                       r"DRI_PRIME|__NV_PRIME_RENDER_OFFLOAD|CUDA_VISIBLE_DEVICES")
# Where the loader looks for drivers when no variable names them
DRIVER_FOLDERS = ("/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d")


@contextmanager
def reporting(path: str | None) -> Iterator[Callable[[Iterable[str]], None]]:
    """Yields a function that adds lines to the file (InputError: another kind of file is there). It
    begins with what is known of the system, and ends with the error that ended the block, if there
    was one. It is complete after every call: if a driver ends the process, what was found before is
    there. Without a path nothing is written."""
    if path is None:
        yield lambda lines: None
        return
    check_replaceable(path, lambda head: head.startswith(MARK.encode()), "a report of vkrt doctor",
                      "--report")
    text = f"{MARK} {__version__}\n"

    def add(lines: Iterable[str], end: str = NOT_ENDED) -> None:
        nonlocal text
        text += "".join(f"{private(line)}\n" for line in lines)
        with replacing(path) as file:
            file.write(f"{text}{end}\n".encode() if end else text.encode())

    add([*_system(), *_packages(), *_environment(), *_drivers(), *_devices()])
    try:
        yield add
    except Exception as error:
        known = isinstance(error, (VkrtError, OSError))
        add(f"error     {line}" for line in (
            [f"{type(error).__name__}: {error}"] if known
            else "".join(traceback.format_exception(error)).splitlines()))
        raise
    add([], "")
    print(f"vkrt: wrote {path}; read it before you show it to others", file=sys.stderr)


def private(text: str) -> str:
    """A line with ~ for the user's folder and, within paths, USER for the user's name."""
    homes, names = {os.path.expanduser("~")}, {os.environ.get("USER"), os.environ.get("LOGNAME")}
    with suppress(KeyError):  # a container may know no user of that number
        user = pwd.getpwuid(os.getuid())
        homes.add(user.pw_dir)
        names.add(user.pw_name)
    for home in homes - {"/", ""}:
        text = re.sub(rf"{re.escape(home.rstrip('/'))}(?![\w.-])", "~", text)
    words = "|".join(re.escape(name) for name in names if name and name != "root") or r"(?!)"
    return re.sub(r"/[^\s:;,'\"]+", lambda path: re.sub(words, "USER", path[0]), text)


def _system() -> Iterator[str]:
    release = {}
    with suppress(OSError):
        release = platform.freedesktop_os_release()
    yield (f"system    {release.get('PRETTY_NAME', 'unknown')}, "
           f"{' '.join(platform.libc_ver()) or 'no glibc'}")
    yield f"kernel    {platform.system()} {platform.release()} {platform.machine()}"
    yield (f"processor {_value('/proc/cpuinfo', 'model name') or platform.machine()}, "
           f"{os.cpu_count()} processors, {len(os.sched_getaffinity(0))} for this process")
    yield f"ram       {_value('/proc/meminfo', 'MemTotal')}"
    yield f"python    {platform.python_implementation()} {sys.version.split()[0]}"


def _value(path: str, name: str) -> str:
    """The first value of a name in a file of lines "name: value"; empty if there is none."""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def _packages() -> Iterator[str]:
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            yield f"package   {name} {metadata.version(name)}"


def _environment() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if VARIABLES.fullmatch(name):
            yield f"variable  {name}={value}"


def _drivers() -> Iterator[str]:
    """The files of drivers that the loader finds by itself."""
    for folder in DRIVER_FOLDERS:
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):
                yield f"driver at {folder}/{name}"


def _devices() -> Iterator[str]:
    try:
        for device in devices():
            yield (f"device    {device.index}: {device.name} ({device.type}, Vulkan "
                   f"{device.api_version}, {device.driver_name} {device.driver_info})")
    except VkrtError as error:
        yield f"devices   {type(error).__name__}: {error}"
