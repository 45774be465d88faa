"""The contents of weights, as texts that are equal where the weights are equal."""

from __future__ import annotations

from vkrt.memory.sha256 import sha256
from vkrt.work.command_list import CommandList


def contents_of(work: CommandList) -> dict[int, str]:
    """For each storage of weights a text of everything that decides its bytes, and how it is read,
    to be compared within one program: other programs have other files."""
    parts: dict[int, list[object]] = {}
    for record in work.prepacks:
        constant, target, storage = record.constant, record.target, record.target.storage
        known = parts.setdefault(storage.id, [storage.nbytes, storage.extents, storage.dtype])
        known.append((constant.key or (constant.source, constant.offset), constant.nbytes,
                      constant.dtype, target.dtype, target.offset, record.shader, record.params))
    return {storage: sha256(repr(known).encode()).hex()[:32] for storage, known in parts.items()}
