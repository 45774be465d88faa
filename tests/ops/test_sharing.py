"""Kernels in a GPU's shape: samples of the operators that have them, as on a device without a row,
with each feature that the device has alone, with all of them together, and with none.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from dealing import DEPTH, RUN
from gaps import run_over_patterns
from harness import Variant, check_each, in_images, merged
from selection import cover, differing, kernels_on
from support import open_method

from vkrt.device.policy import overridden, policy_from, policy_of, target_of
from vkrt.device.rows import FEATURES, PACKAGE, read
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.work.target import Target

DEFAULT = policy_from(read(f"{PACKAGE}/default.json"))


def sharing(policy, features=()):
    """A driver's policy with the kernels that default.json chooses, and these features."""
    return replace(policy, features=tuple(features), tuning=DEFAULT.tuning, winograd=False)


def differs(graph: Graph) -> bool:
    """Whether an operator has other kernels where workgroups share and 8 bits become floats."""
    plain = Target(max_texels=1 << 26,
                   tuning=replace(DEFAULT.tuning, shares=False, float_products=False))
    ours = replace(plain, tuning=DEFAULT.tuning, features=frozenset(FEATURES))
    return lower(graph, plain).steps != lower(graph, ours).steps


@cache
def groups() -> dict[tuple[str, bool], list[Variant]]:
    """The samples that differ, by operator and whether they are in fp16."""
    found: dict[tuple[str, bool], list[Variant]] = {}
    for variant in differing("sharing", differs,
                             lambda variant: variant.layout == "plain" or not variant.half):
        found.setdefault((variant.sample.op, variant.half), []).append(variant)
    return found


def offered(device) -> list[tuple[str, ...]]:
    """No feature, each that a device has unless tests are to be quick, and all of them."""
    with overridden(sharing(policy_of(device.info), FEATURES)):
        has = target_of(device.info, enabled=device.features).features
    found = [name for name in FEATURES if name in has]
    if len(found) < 2:
        return [(), *((name,) for name in found)]
    return [(), *((name,) for name in found if DEPTH != "quick"), tuple(found)]


@pytest.mark.usefixtures("apart")
def test_samples(storage, device):
    ran: set[Any] = set()
    for op, half in sorted(groups())[::2 if DEPTH == "quick" else 1]:
        if DEPTH == "full":
            ran = set()
        members = groups()[op, half]
        graphs = graphs_of(members)
        for features in offered(device):
            with overridden(sharing(policy_of(device.info), features)):
                run(members, graphs, half, storage, device, features, ran)


def graphs_of(members) -> dict[int, Any]:
    """The graphs of samples, by their identity: they are made once for all sets of features."""
    return {id(variant): variant.case().graph for variant in members}


def run(members, graphs, half, storage, device, features, ran) -> None:
    """Runs samples of one operator, whose graphs are those of `graphs_of`, unless their kernels, or
    where not everything runs each of them, ran before."""
    target = target_of(device.info, storage, enabled=device.features)
    assert target.features == set(features)
    if storage == "texture3d":
        members = in_images(members, half, device.info, target)
    if DEPTH != "full" and RUN != "swiftshader":
        # lavapipe takes long to compile a kernel.
        members = cover(((variant, kernels_on(graphs[id(variant)], target))
                         for variant in members), ran)
        if not members:
            return
    cases = [variant.case() for variant in members]
    graph, data, inputs = merged(cases)
    kernels = tuple(step.shader for step in lower(graph, target).steps)
    if not members or kernels in ran or (RUN == "swiftshader" and DEPTH != "full"
                                         and ran.issuperset(kernels)):
        return
    ran.update((kernels, *kernels))
    with open_method(graph, data, device, storage=storage) as method:
        results = run_over_patterns(method, inputs)
    check_each([f"{variant} with {features}" for variant in members], cases, results)
