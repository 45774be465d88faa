"""Devices that no driver at hand is like: a layer between the loader and the driver (`hostile/`),
and for each device a profile, `hostile/profiles/NAME.json`.

The layer is compiled when it is first asked for, into `.cache/hostile`. VKRT_TEST_PROFILE=NAME runs
tests on the driver at hand as that device.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "hostile"
CACHE = Path(__file__).parent.parent / ".cache" / "hostile"
LAYER = "VK_LAYER_VKRT_hostile"
VALIDATION = "VK_LAYER_KHRONOS_validation"
# Where explicit layers are by default: VK_LAYER_PATH stands for all of these.
FOLDERS = [f"{root}/vulkan/explicit_layer.d"
           for root in ("/usr/share", "/usr/local/share", "/etc", "/usr/local/etc")]

TYPES = {"other": 0, "integrated": 1, "discrete": 2, "virtual": 3, "cpu": 4}
QUEUE_FLAGS = {"graphics": 1, "compute": 2, "transfer": 4}
MEMORY_FLAGS = {"device_local": 1, "host_visible": 2, "host_coherent": 4, "host_cached": 8,
                "lazily_allocated": 16}
# VkFormatFeatureFlags
FORMAT_FLAGS = {"sampled_image": 1, "storage_image": 2, "uniform_texel_buffer": 8,
                "storage_texel_buffer": 16, "transfer": 0xC000}
IMPORTS = {"work": 0, "refused": 1, "lost": 2, "denied": 3}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
KEYS = {"name", "about", "like", "api_version", "type", "vendor", "device", "driver_id", "limits",
        "features", "extensions", "queues", "heaps", "memory_types", "buffers", "images",
        "imports", "buffer_alignment", "image_alignment", "formats", "reorders"}


def profile_names() -> list[str]:
    """Names of all profiles, in alphabetic order."""
    return sorted(path.stem for path in (HERE / "profiles").glob("*.json"))


def read_profile(name: str) -> dict[str, Any]:
    """A profile, with what it leaves out from the one that it is `like`; pytest.UsageError where
    there is none of that name, or a key is not known."""
    if name not in profile_names():
        raise pytest.UsageError(
            f"no profile {name!r} in {HERE / 'profiles'}; there are {', '.join(profile_names())}")
    found = json.loads((HERE / "profiles" / f"{name}.json").read_text())
    if set(found) - KEYS:
        raise pytest.UsageError(f"profile {name}: unknown keys {sorted(set(found) - KEYS)}")
    if "like" in found:
        base = read_profile(found["like"])
        found = {**base, **found, "limits": {**base["limits"], **found.get("limits", {})}}
    return found


def nbytes(size: int | str) -> int:
    """Bytes of a size such as 1000 or "8 GiB"."""
    if isinstance(size, int):
        return size
    number, unit = size.split()
    return int(number) * UNITS[unit]


def bits(words: list[str], flags: dict[str, int]) -> int:
    """The sum of the flags that have these names."""
    return sum(flags[word] for word in words)


def one_bits(numbers: list[int]) -> int:
    """A mask with these bits."""
    return sum(1 << number for number in numbers)


def flat(profile: dict[str, Any]) -> str:
    """The lines that `hostile/profile.c` reads."""
    major, minor = map(int, profile["api_version"].split("."))
    lines: list[tuple[Any, ...]] = [
        ("name", profile["name"]), ("api_version", major << 22 | minor << 12),
        ("type", TYPES[profile["type"]]),
        *((key, profile[key]) for key in ("vendor", "device", "driver_id", "buffer_alignment",
                                          "image_alignment", "reorders") if key in profile),
        ("imports", IMPORTS[profile.get("imports", {}).get("how", "work")]),
        *(("extension", name) for name in profile["extensions"]),
        *(("feature", name) for name in profile["features"]),
        *(("family", bits(words, QUEUE_FLAGS)) for words in profile["queues"]),
        *(("heap", nbytes(heap["size"]), int(heap["device_local"])) for heap in profile["heaps"]),
        *(("memory_type", heap, bits(words, MEMORY_FLAGS))
          for heap, words in profile["memory_types"]),
        *((name, *(value if isinstance(value, list) else [nbytes(value)]))
          for name, value in profile["limits"].items()),
        *(("format", number, bits(images, FORMAT_FLAGS), bits(buffers, FORMAT_FLAGS))
          for number, images, buffers in profile.get("formats", []))]
    lines += [(f"{what}_types", one_bits(profile[f"{what}s"])) for what in ("buffer", "image")
              if f"{what}s" in profile]
    if "types" in profile.get("imports", {}):
        lines.append(("import_types", one_bits(profile["imports"]["types"])))
    return "".join(" ".join(str(int(word) if isinstance(word, bool) else word) for word in line)
                   + "\n" for line in lines)


def build() -> Path:
    """The folder of the layer and its manifest, compiled if its sources have changed;
    pytest.UsageError where there is no C compiler."""
    sources = sorted(HERE.glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = CACHE / digest
    library = folder / "libhostile.so"
    if not library.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise pytest.UsageError("VKRT_TEST_PROFILE needs a C compiler, cc")
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{os.getpid()}.so"
        subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-O2", "-g", "-shared", "-fPIC",
                        "-fvisibility=hidden", "-o", made, *HERE.glob("*.c"), "-pthread"],
                       check=True)
        made.rename(library)
    _put(folder / "hostile.json", json.dumps({"file_format_version": "1.1.2", "layer": {
        "name": LAYER, "type": "GLOBAL", "library_path": "./libhostile.so",
        "api_version": "1.3.239", "implementation_version": "1",
        "description": "The driver as another device, for tests of vkrt"}}))
    return folder


def _put(path: Path, text: str) -> None:
    """Writes a file that other processes may be reading or writing as well."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_text(text)
    own.rename(path)


def environment_of(name: str, imports: str = "", **limits: Any) -> dict[str, str]:
    """The environment in which a process finds the driver's device as a profile describes it, with
    these limits, and with `imports` (one of `IMPORTS`), in the place of the profile's."""
    folder = build()
    profile = read_profile(name)
    if imports:
        profile["imports"] = {**profile["imports"], "how": imports}
    for key in KEYS & set(limits):
        profile[key] = limits.pop(key)
    text = flat({**profile, "limits": {**profile["limits"], **limits}})
    file = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.profile"
    _put(file, text)
    # The first is the application's neighbour: validation sees the limits of the profile. Loaders
    # before 1.3.243 go by the order of the folders.
    validates = os.environ.get("VKRT_VALIDATION") == "1"
    return {"VKRT_HOSTILE_PROFILE": str(file),
            "VK_LAYER_PATH": os.pathsep.join([*FOLDERS, str(folder)]),
            "VK_INSTANCE_LAYERS": os.pathsep.join([VALIDATION] * validates + [LAYER])}
