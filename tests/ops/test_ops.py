"""Every sample of every operator on the driver, against numpy: all samples of an operator as one
program whose sizes are push constants, and each sample as a program of its own, with its sizes
compiled into the pipelines. Compiling takes most of the time, so each driver has a part of them.
"""

import pytest
from dealing import DEPTH, RUN, STORAGES, is_of_newer, is_of_profile
from gaps import check_weights, run_over_patterns
from harness import (
    SPREADING,
    Variant,
    check,
    check_each,
    check_leaks,
    grouped,
    in_images,
    merged,
    variants,
)
from selection import chosen
from support import execute, open_method

from vkrt.device.policy import target_of

PLAIN = [v for v in variants() if not v.half and v.layout == "plain"]
# The samples of one operator in one precision and layout, in a storage
Group = tuple[tuple[str, bool, str], str]


def _groups() -> dict[Group, list[Variant]]:
    """What this run takes.

    All: on lavapipe the groups that have samples of every kernel, on SwiftShader the others, under
    validation samples of every interface, on profiles samples of every kernel. Quick: on lavapipe
    and on SwiftShader samples of every kernel. In both the newer lavapipe has some of those samples
    in the place of the other one.
    """
    samples = {(key, storage): group for key, group in grouped().items() for storage in STORAGES}
    # In other precisions and layouts, buffers show nothing new but their kernels.
    everything = {(key, storage): group for (key, storage), group in samples.items()
                  if storage != "buffer" or key[1:] == (False, "plain")}
    if DEPTH == "full":
        return everything
    places = chosen("interfaces" if RUN == "validation" else "kernels")
    kernels = {where: few for where, group in samples.items()
               if (few := [v for v in group if (str(v), where[1]) in places])}
    if RUN == "profile":
        return {where: few for where, few in kernels.items() if is_of_profile(where)}
    if RUN == "newer":
        return {where: few for where, few in kernels.items() if is_of_newer(where)}
    ours = {where: few for where, few in kernels.items() if not is_of_newer(where)}
    if RUN == "lavapipe":
        return ours if DEPTH == "quick" else {where: samples[where] for where in ours}
    if DEPTH == "quick" or RUN == "validation":
        return kernels
    rest = everything | {where: samples[where] for where in kernels}
    return {where: group for where, group in rest.items() if where not in ours}


def _parameters() -> list:
    return [pytest.param(group, storage, id="-".join((key[0], "half" if key[1] else "single",
                                                      key[2], storage)))
            for (key, storage), group in _groups().items()]


def _specialized() -> list[Variant]:
    """Plain samples: everything, or those that have every kernel, or every interface."""
    if DEPTH == "full":
        return PLAIN
    places = chosen("kernels" if DEPTH == "all" else "interfaces")
    return [v for v in PLAIN if any((str(v), storage) in places for storage in STORAGES)]


# Not marked `driver`: compiling samples takes minutes, once has to do.
@pytest.mark.dealt
@pytest.mark.parametrize("variant", _specialized(), ids=str)
def test_specialized(variant: Variant, device):
    case = variant.case()
    check(execute(*case.program, device, specialize="all"), case)


@pytest.mark.dealt
@pytest.mark.driver
@pytest.mark.parametrize(("group", "storage"), _parameters())
@pytest.mark.usefixtures("apart")
def test_all_samples(group: list[Variant], storage: str, device):
    if storage == "texture3d":
        group = in_images(group, group[0].half, device.info, target_of(device.info, storage))
    if not group:
        pytest.skip("no sample fits this device's images")
    cases = [variant.case() for variant in group]
    graph, data, inputs = merged(cases)
    with open_method(graph, data, device, storage=storage) as method:
        check_weights(method)
        results = run_over_patterns(method, inputs)
        check_each(group, cases, results)
        if group[0].group != SPREADING:
            spoiled = [variant.spoiled().case() for variant in group]
            leaks = method.execute([array for case in spoiled for array in case.inputs])
            check_each(group, spoiled, leaks, check_leaks)
