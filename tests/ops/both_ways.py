"""Samples that run with several policies of a driver: kernels differ, results must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import Variant, check_each, in_images, merged
from support import execute, same_bits

from vkrt.device.policy import Policy, overridden, target_of


def check_both_ways(members: Sequence[Variant], half: bool, policies: Sequence[Policy],
                    storage: str, device: Any) -> None:
    """Runs samples, in halves or not, together with each policy: right, and the same bits.

    Of "texture3d" those that fit the device's images.
    """
    if storage == "texture3d":
        members = in_images(members, half, device.info, target_of(device.info, storage))
    cases = [variant.case() for variant in members]
    graph, data, inputs = merged(cases)
    results = []
    for policy in policies:
        with overridden(policy):
            results.append(execute(graph, data, inputs, device, storage=storage))
    for other in results[1:]:
        same_bits(results[0], other)
    check_each(members, cases, results[0])
