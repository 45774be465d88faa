"""sha256 of what is in memory: of headers, keys and small files.

The standard library's `hashlib` brings OpenSSL, which takes 3.3 MB and 3 ms. The interpreter's own
module is slower for many bytes: whole files are for `hashlib`.
"""

from __future__ import annotations

from functools import cache

from vkrt.hints import Any


@cache
def _maker() -> Any:
    # Looked for once: a module that is not there is looked for in every folder.
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found]  # until 3.11
        except ImportError:  # an interpreter that was built without it
            from hashlib import sha256
    return sha256


def sha256(data: bytes) -> bytes:
    """The 32 bytes of the sha256 of some bytes."""
    return _maker()(data).digest()
