"""sha256 of what is in memory: of headers, keys and small files.

The standard library's `hashlib` brings OpenSSL, which takes 3.3 MB and 3 ms. The interpreter's own
module is slower for many bytes: whole files are for `hashlib`.
"""

from __future__ import annotations


def sha256(data: bytes) -> bytes:
    """The 32 bytes of the sha256 of some bytes."""
    try:
        from _sha2 import sha256 as make  # type: ignore[import-not-found]
    except ImportError:
        try:
            from _sha256 import sha256 as make  # type: ignore[import-not-found]  # until 3.11
        except ImportError:  # an interpreter that was built without it
            from hashlib import sha256 as make
    return make(data).digest()
