"""The layer shows the driver as each profile describes a device, and programs run on it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hostile_device import environment_of, nbytes, profile_names, read_profile
from support import run_python


def run(name: str, **limits: Any) -> dict[str, Any]:
    """What `programs.run_all` says on a device."""
    return json.loads(run_python("from hostile.programs import run_all; run_all()",
                                 **environment_of(name, **limits)).splitlines()[-1])


# Not marked `driver`: one driver has to do.
@pytest.mark.parametrize("name", profile_names())
def test_programs_run_on_what_a_profile_describes(name, monkeypatch):
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    profile, found = read_profile(name), run(name)
    assert found["faults"] == []
    assert found["name"] == profile["name"] and found["type"] == profile["type"]
    assert found["unified"] is (profile["type"] == "integrated")
    assert found["memory_types"] == profile["memory_types"]
    assert [heap["size"] for heap in found["heaps"]] == [nbytes(heap["size"])
                                                         for heap in profile["heaps"]]
    assert set(found["extensions"]) <= set(profile["extensions"])
    assert found["features"]["timeline"] is ("timelineSemaphore" in profile["features"])
    # Bits of VkSubgroupFeatureFlags: basic, arithmetic
    for bit, name in ((1, "basic"), (4, "arithmetic")):
        assert found["features"][f"subgroup_{name}"] is (
            profile["limits"]["subgroupSupportedOperations"] & bit != 0)
    for limit in ("maxTexelBufferElements", "maxStorageBufferRange",
                  "maxPerStageDescriptorStorageBuffers", "maxComputeWorkGroupInvocations"):
        assert found["limits"][limit] <= nbytes(profile["limits"][limit])
    assert found["limits"]["nonCoherentAtomSize"] >= profile["limits"]["nonCoherentAtomSize"]


IMPORTS = """
    import ctypes, mmap
    import vkrt
    from hostile.programs import said_by_the_layer
    from support import MODELS
    from vkrt.executable.formats import BUFFER_USAGE
    from vkrt.vk.device import Device
    from vkrt.vk.imported import HostImport, import_alignment

    with said_by_the_layer() as said, Device.open() as device:
        for weights in () if {size} else ("auto", "map"):
            try:
                with vkrt.load(MODELS / "mlp.pte", device, weights=weights) as program:
                    program.run(*[info.example() for info in program.metadata().inputs])
                    print(weights, "mapped", program.memory.mapped > 0)
            except vkrt.VkrtError as error:
                print(weights, type(error).__name__, error)
        if {size}:
            memory = mmap.mmap(-1, {size})
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            try:
                HostImport(device, address, {size}, BUFFER_USAGE).close()
                print("imported")
            except vkrt.VulkanError as error:
                print(error)
    print(said)
"""


def test_imports_that_a_device_denies():
    """It has the extension, and says that no buffer can have such memory."""
    said = run_python(IMPORTS.format(size=0), **environment_of("intel", imports="denied"))
    auto, insisted, layer = said.splitlines()
    assert auto == "auto mapped False" and layer == "[]"
    assert insisted.startswith("map UnsupportedError") and (
        "the driver says that it imports no host memory for buffers" in insisted)


def test_imports_with_less_memory_than_a_buffer_needs():
    """Its size is rounded up to its alignment; the memory is what it is."""
    said = run_python(IMPORTS.format(size=4096), **environment_of("intel", buffer_alignment=16384))
    assert said.splitlines()[-2:] == ["a buffer over 4096 imported bytes needs 16384", "[]"]


def test_blocks_are_no_larger_than_the_device_allocates(monkeypatch):
    """Weights get several blocks, and activations that need a larger one are refused."""
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    faults = run("minimum", maxMemoryAllocationSize=40_000)["faults"]
    # Between the buffers and the images of an arena there are granularities of 128 KiB.
    assert all(fault.startswith("unet_small") or "texture3d" in fault or "staging buffer" in fault
               for fault in faults)
    assert faults and all("UnsupportedError" in fault and "at most 40,000 bytes at once" in fault
                          for fault in faults)


@pytest.mark.parametrize("limits", [{"maxTexelBufferElements": 512},
                                    {"maxImageDimension3D": 20}])
def test_sizes_beyond_views_and_images(limits, monkeypatch):
    """Small programs reach these limits: tensors beyond them are read another way."""
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    assert run("minimum", **limits)["faults"] == []


@pytest.mark.parametrize("profile", ["nvidia", "powervr"])
def test_layouts_change_where_a_buffer_is_copied(profile, monkeypatch):
    """The layer looks whether an image's layout changed since its memory held something else."""
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    assert run_python("from hostile.moves import run_moves; run_moves()",
                      **environment_of(profile)) == "right\n"
