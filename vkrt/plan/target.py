"""What work lists are made for, by the options of a load: the target of a device, and the passes
that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from vkrt.device import policy
from vkrt.device.policy import FUSIONS
from vkrt.errors import InputError
from vkrt.work.target import Target

# Before the name of a pass that `fusions` leaves out
WITHOUT = "no-"


def skipped_passes(fusions: str) -> frozenset[str]:
    """Names of the passes that the option leaves out one by one: "no-simplify,no-fuse_padding".

    Raises:
        InputError: it is neither "on" nor "off" nor a list of such names.
    """
    if fusions in FUSIONS:
        return frozenset()
    words = fusions.split(",") if isinstance(fusions, str) else []
    if not words or not all(word.startswith(WITHOUT) for word in words):
        raise InputError(f"fusions={fusions!r}: expected one of {', '.join(FUSIONS)}, or names of "
                         f"passes with {WITHOUT!r} in front and commas between")
    return frozenset(word.removeprefix(WITHOUT) for word in words)


def target_of(info, storage: str, winograd: str, fusions: str, enabled: Set[str],
              refused: Iterable[str]) -> Target:
    """The target of a device; see `vkrt.device.policy.target_of` for the other arguments.

    Args:
        fusions: "on", "off", or the passes to leave out (`skipped_passes`).
    """
    skipped = skipped_passes(fusions)
    target = policy.target_of(info, storage, winograd, "on" if skipped else fusions, enabled,
                              refused)
    return replace(target, skipped=skipped)
