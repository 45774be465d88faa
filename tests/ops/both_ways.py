"""Samples that run with several policies of a driver: kernels differ, results must not."""

from collections.abc import Sequence
from typing import Any

from dealing import DEPTH, RUN
from harness import Variant, check_each, in_images, merged
from selection import cover, kernels_on
from support import execute, same_bits

from vkrt.device.policy import Policy, overridden, target_of


def check_both_ways(members: Sequence[Variant], half: bool, policies: Sequence[Policy],
                    storage: str, device: Any, by_kernel: bool = False) -> None:
    """Runs samples together with each policy: right, and the same bits; of "texture3d" those that
    fit images. `by_kernel` is for policies that differ in the names of kernels: where not
    everything runs, lavapipe, which takes long to compile one, has samples that together have every
    kernel."""
    if storage == "texture3d":
        members = in_images(members, half, device.info, target_of(device.info, storage))
    if by_kernel and DEPTH != "full" and RUN != "swiftshader":
        members = _with_every_kernel(members, policies, storage, device)
    cases = [variant.case() for variant in members]
    graph, data, inputs = merged(cases)
    results = []
    for policy in policies:
        with overridden(policy):
            results.append(execute(graph, data, inputs, device, storage=storage))
    for other in results[1:]:
        same_bits(results[0], other)
    check_each(members, cases, results[0])


def _with_every_kernel(members: Sequence[Variant], policies: Sequence[Policy], storage: str,
                       device: Any) -> list[Variant]:
    """Samples that together have every operator, and every kernel with each policy."""
    targets = []
    for policy in policies:
        with overridden(policy):
            targets.append(target_of(device.info, storage))
    def found(variant: Variant) -> set[Any]:
        graph = variant.case().graph
        return {variant.sample.op, *((number, kernel) for number, target in enumerate(targets)
                                     for kernel in kernels_on(graph, target))}

    return cover((variant, found(variant)) for variant in members)
