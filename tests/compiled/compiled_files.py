"""Files of compiled programs, made and changed by tests."""

from __future__ import annotations

from contextlib import closing

from vkrt.compiled.file import HEAD, read
from vkrt.executable import rows
from vkrt.memory.source import Source


def smaller(info) -> tuple[int, ...]:
    """Sizes that a dynamic input may have."""
    return tuple(n - n % 4 - 4 if d in info.dynamic_dims else n for d, n in enumerate(info.sizes))


def rewritten(out, change) -> None:
    """The file with other records."""
    with closing(Source.open(out)) as source:
        compiled = read(source).read()
    data = out.read_bytes()
    magic, version, zero, start, _ = HEAD.unpack_from(data)
    records = rows.to_bytes(change(compiled))
    out.write_bytes(HEAD.pack(magic, version, zero, start, len(records)) + data[HEAD.size:start]
                    + records)
