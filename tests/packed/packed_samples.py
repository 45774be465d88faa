"""Programs to change, and files of packed weights: written without a device, and changed."""

from __future__ import annotations

import hashlib
import shutil
import struct
from dataclasses import replace
from pathlib import Path

from support import MODELS

from vkrt.description import Description
from vkrt.files import packed_beside
from vkrt.memory.source import Source
from vkrt.ops.lowering import lower
from vkrt.packed import format as vkpack
from vkrt.packed import sidecar, writer
from vkrt.work.records import WorkList
from vkrt.work.target import Target

PREFIX = 48


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy2(MODELS / f"{name}.pte", folder))


def works_of(description: Description, **target) -> list[WorkList]:
    return [lower(description.graph(name), Target(**target)) for name in description.method_names]


def packed_without_a_device(model: Path, **target) -> tuple[Path, vkpack.Header]:
    """Writes the file of packed weights for a device of Vulkan's minima."""
    description = Description(model)
    output = Path(packed_beside(str(model)))
    jobs = writer.jobs_of(works_of(description, **target), [description.source])
    header = writer.write(str(output), jobs, [description.source], device="none", storage="texel")
    description.close()
    return output, header


def found(model: Path, option: str | Path = "auto") -> sidecar.Sidecar:
    """What a load finds, closed."""
    source = Source.open(model)
    result = sidecar.Sidecar.find(option, [source])
    result.close()
    source.close()
    return result


def put(path: Path, header: vkpack.Header, **changes) -> None:
    """Writes a file with a changed header, of which the checksum is right."""
    data = path.read_bytes()
    _, start = vkpack.read_header(memoryview(data))
    path.write_bytes(vkpack.header_bytes(replace(header, **changes)) + data[start:])


def put_json(path: Path, text: bytes) -> None:
    """Writes a file with any bytes for JSON, of which the checksum is right."""
    data = path.read_bytes()
    _, start = vkpack.read_header(memoryview(data))
    text = text.ljust(-(-(PREFIX + len(text)) // 4096) * 4096 - PREFIX)
    prefix = struct.pack("<8sII32s", b"vkrtpack", 1, len(text), hashlib.sha256(text).digest())
    path.write_bytes(prefix + text + data[start:])
