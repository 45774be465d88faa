"""Saved states as bytes: a description in JSON, then the values one after the other.

    0   8 bytes "vkrtst1\\0"
    8   length of the JSON, 8 bytes, little-endian
    16  JSON: a list of [name, dtype, sizes]
    ..  the values, contiguous
"""

from __future__ import annotations

import json
from typing import Any

from vkrt.capi.arrays import nbytes_of
from vkrt.errors import InputError
from vkrt.method.method import Method
from vkrt.method.states import State

MAGIC = b"vkrtst1\0"


def _header(method: Method) -> bytes:
    entries = [[tensor.name, tensor.dtype, tensor.sizes] for tensor in method.states]
    text = json.dumps(entries).encode()
    return MAGIC + len(text).to_bytes(8, "little") + text


def saved_bytes(method: Method) -> int:
    """How many bytes `save` writes."""
    return len(_header(method)) + sum(nbytes_of(tensor.dtype, tensor.sizes)
                                      for tensor in method.states)


def save(method: Method, state: State, memory: Any) -> None:
    """Writes the values of a state to a view of enough bytes."""
    header = _header(method)
    memory[:len(header)] = header
    at = len(header)
    values = state.save()
    for tensor in method.states:
        data = values[tensor.name].tobytes()
        memory[at:at + len(data)] = data
        at += len(data)


def load(method: Method, state: State, memory: Any) -> None:
    """Sets a state to values that `save` wrote.

    Raises:
        InputError: the bytes are no saved state, or another method's.
    """
    import numpy as np

    header = _header(method)
    if bytes(memory[:len(MAGIC)]) != MAGIC:
        raise InputError("these bytes are no saved state")
    if bytes(memory[:len(header)]) != header or len(memory) != saved_bytes(method):
        raise InputError(f"this is the state of another method than '{method.metadata.name}', or "
                         "not all of it")
    values, at = {}, len(header)
    for tensor in method.states:
        nbytes = nbytes_of(tensor.dtype, tensor.sizes)
        values[tensor.name] = np.frombuffer(memory[at:at + nbytes], tensor.dtype).reshape(
            tensor.sizes)
        at += nbytes
    state.load(values)
