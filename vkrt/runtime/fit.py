"""Fit: checks that a compiled method fits a device, and makes it ready for that, or refuses it.

The core compares (vkrt/core/fit.pyx). Memory types have other numbers on every device, so blocks
get the memory types of this device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkrt.device.policy import policy_of
from vkrt.executable.executable import Executable
from vkrt.executable.fit import fit
from vkrt.executable.flat import File
from vkrt.executable.memory import Block
from vkrt.executable.program import CompiledMethod
from vkrt.runtime.handles import requirements_of


def fitted(file: File, target: int, number: int, method: CompiledMethod,
           device: Any) -> list[Executable]:
    """The executables of a method at every shape, for a device.

    Args:
        file: the file that the method is in.
        target, number: of the target in the file, and of the method in the target, see `fit`.
        method: what the file says of it.
        device: an open device.

    Raises:
        UnsupportedError: the device does not fit; the message says why.
    """
    policy = policy_of(device.info)
    limits = dict(device.info.limits)
    limits["maxTexelBufferElements"] = policy.max_texels or limits["maxTexelBufferElements"]
    first, weights, states, *others = fit(file, target, number, limits, device.unified,
                                          policy.loop_limit, requirements_of(device))
    made = []
    for executable, bits in zip(method.executables, (first, *others)):
        made.append(executable._replace(
            execution=executable.execution._replace(
                blocks=_of_types(executable.execution.blocks, bits)),
            weights=executable.weights._replace(
                blocks=_of_types(executable.weights.blocks, weights)),
            states=executable.states._replace(
                blocks=_of_types(executable.states.blocks, states))))
    return made


def _of_types(blocks: Sequence[Block], bits: Sequence[int]) -> tuple[Block, ...]:
    """The blocks with other memory types."""
    return tuple([block._replace(type_bits=found) for block, found in zip(blocks, bits)])
