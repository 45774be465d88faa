"""Kernels whose lanes load for each other (shaders/common/shuffle.glsl): when they are chosen, and
that results are the same bits as without. Those of attention are not: test_attention_tile.py.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from both_ways import check_both_ways
from harness import Variant, in_images, merged
from selection import differing
from small_graphs import shaders_of
from support import run_python

from vkrt.cli.tune import convolution, linear
from vkrt.device.policy import SWIFTSHADER, overridden, policy_of, target_of
from vkrt.lowering.lowering import lower
from vkrt.vk.info import DeviceInfo
from vkrt.work.target import Target
from vkrt.work.tuning import LANES, WIDE_TILES, Tuning

LAVAPIPE = 13
PLAIN = Tuning()
# A driver on which they are faster by so much that they are taken wherever there are any
WIDE = replace(PLAIN, tiles=(*((tile, 1e6) for tile in WIDE_TILES), *PLAIN.tiles))
OPS = ("aten.linear.default", "aten.mm.default", "aten.bmm.default", "aten.addmm.default",
       "aten.convolution.default", "et_vk.conv_with_clamp.default",
       "et_vk.linear_q4gsw.default", "et_vk.linear_qcs4w.default",
       "aten._weight_int8pack_mm.default")
# Weights of 8 bits are words for them, which images are not.
NOT_IMAGES = ("aten._weight_int8pack_mm.default",)


def kernels(graph, target: Target) -> set[str]:
    return set(shaders_of(lower(graph, target)))


def are_wide(names) -> bool:
    return any(name.endswith(".shuffle") for name in names)


@cache
def samples(half: bool) -> dict[str, list[Variant]]:
    """The samples that have such kernels, by operator."""
    target = Target(max_texels=1 << 26, tuning=WIDE, features=frozenset(["shuffle"]))
    found: dict[str, list[Variant]] = {}
    for variant in differing(
            f"shuffle-{half}", lambda graph: are_wide(kernels(graph, target)),
            lambda variant: (variant.sample.op in OPS and variant.half == half
                             and variant.layout == "plain")):
        found.setdefault(variant.sample.op, []).append(variant)
    return found


def policies(device):
    """The device's, with plain kernels and with those whose lanes hand round what they load."""
    own = replace(policy_of(device.info), winograd=False)
    return (replace(own, features=(), tuning=PLAIN),
            replace(own, features=("shuffle",), tuning=WIDE))


def has_lanes(device) -> bool:
    return (device.info.features["subgroup_shuffle"]
            and device.info.limits["subgroupSize"] >= LANES)


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.usefixtures("apart")
def test_samples(half, storage, device):
    """Right, and the same bits."""
    assert set(samples(half)) == set(OPS)
    for op, members in samples(half).items():
        if storage == "texture3d":
            if op in NOT_IMAGES:
                continue
            members = in_images(members, half, device.info, target_of(device.info, storage))
        graph, *_ = merged([variant.case() for variant in members])
        for policy in policies(device):
            with overridden(policy):
                names = kernels(graph, target_of(device.info, storage))
                assert are_wide(names) == (policy.tuning == WIDE and has_lanes(device))
        if has_lanes(device):  # else the same kernels twice, which test_ops.py runs
            check_both_ways(members, half, policies(device), storage, device, by_kernel=True)


def info(subgroup: int, driver: int = LAVAPIPE, **features: bool) -> DeviceInfo:
    """A device of a driver whose subgroups have so many lanes."""
    names = ("maxTexelBufferElements", "maxStorageBufferRange", "maxMemoryAllocationSize",
             "maxImageDimension3D", "minStorageBufferOffsetAlignment",
             "minTexelBufferOffsetAlignment", "maxComputeWorkGroupInvocations",
             "maxComputeSharedMemorySize")
    limits = {**dict.fromkeys(names, 1 << 20), "subgroupSize": subgroup,
              "maxComputeWorkGroupCount": (65535,) * 3, "maxComputeWorkGroupSize": (1024,) * 3}
    return DeviceInfo(0, "a device", "cpu", 0, 0, driver, "a driver", "Mesa 22.3.6", "1.3.230",
                      limits=limits, features={"subgroup_basic": True, "subgroup_shuffle": True,
                                               **features})


@pytest.mark.parametrize("graph", [linear(64, 64), convolution(64, 16, 3)], ids=["linear", "conv"])
def test_choice(graph):
    """Where the device has the operation, and lanes enough for it."""
    for subgroup in (8, 16, 32, 64):
        assert are_wide(kernels(graph, target_of(info(subgroup), winograd="off")))
    for device in (info(4), info(1), info(8, subgroup_shuffle=False)):
        target = target_of(device, winograd="off")
        assert "shuffle" not in target.features
        assert not set(dict(target.tuning.tiles)) & set(WIDE_TILES)
        assert not are_wide(kernels(graph, target))


@pytest.mark.parametrize("graph", [linear(2, 64), linear(64, 8), linear(7, 8)],
                         ids=["few rows", "few columns", "few of both"])
def test_small_products_have_smaller_tiles(graph):
    assert not are_wide(kernels(graph, target_of(info(8))))


def test_drivers_that_have_them():
    """Those on which they were measured to be faster."""
    for driver, wanted in ((LAVAPIPE, True), (SWIFTSHADER, False), (0, False)):
        tiles = dict(policy_of(info(8, driver)).tuning.tiles)
        assert bool(set(tiles) & set(WIDE_TILES)) == wanted


RUN = """
    import sys
    import numpy as np
    from vkrt.cli.tune import convolution, linear
    from vkrt.device.policy import target_of
    from vkrt.memory.source import Source
    from vkrt.method.method import Method
    from vkrt.lowering.lowering import lower
    from vkrt.plan.options import LoadOptions
    from vkrt.vk.device import Device

    with Device.open() as device:
        assert device.info.limits["subgroupSize"] == int(sys.argv[1])
        for graph in linear(61, 48), convolution(24, 13, 3), convolution(32, 16, 1):
            names = {step.shader for step in lower(graph, target_of(
                device.info, winograd="off")).steps}
            numbers = np.random.default_rng(1).standard_normal(1 << 16, np.float32) / 8
            method = Method(graph, [Source.wrap(numbers.tobytes())], device,
                            options=LoadOptions(winograd="off"))
            x = np.random.default_rng(2).standard_normal(graph.inputs[0].sizes, np.float32)
            y, = method.execute([x])
            method.close()
            print(any(name.endswith(".shuffle") for name in names), y.tobytes().hex())
"""


@pytest.mark.parametrize(("lanes", "is_wide"), [(4, False), (16, True)])
def test_other_sizes_of_subgroups(lanes, is_wide, device, tmp_path):
    """lavapipe makes them as large as the vectors that it is to use. Subgroups of 4 do not run
    these kernels, and in larger ones 8 lanes at a time do."""
    if device.info.driver_id != LAVAPIPE:
        pytest.skip("the size of a subgroup is fixed")
    expected = [line.split() for line in run_python(
        RUN, str(device.info.limits["subgroupSize"])).splitlines()]
    # Its cache does not tell apart what it compiled for another size.
    found = [line.split() for line in run_python(
        RUN, str(lanes), LP_NATIVE_VECTOR_WIDTH=str(32 * lanes),
        MESA_SHADER_CACHE_DIR=str(tmp_path)).splitlines()]
    assert [wide for wide, _ in expected] == ["True"] * 3
    assert [wide for wide, _ in found] == [str(is_wide)] * 3
    assert [bits for _, bits in found] == [bits for _, bits in expected]
    assert all(np.isfinite(np.frombuffer(bytes.fromhex(bits), np.float32)).all()
               for _, bits in found)
