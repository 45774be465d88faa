"""What vkrt says it needs of a device, and devices that do not have it."""

from contextlib import closing

import numpy as np
import pytest
from host_device import open_host
from support import MODELS, need_one_memory

import vkrt
from vkrt.compiler import requirements
from vkrt.compiler.description import Description
from vkrt.shader import shader_library
from vkrt.vk.device import Device

MLP = MODELS / "mlp.pte"


def fields(features):
    return [feature.field or feature.extension for feature in features]


def test_every_program_runs_on_the_least_device():
    """Vulkan 1.1 and a compute queue; all else is optional."""
    found = vkrt.required_features()
    assert found.api_version == "1.1" and found.queue == ("VK_QUEUE_COMPUTE_BIT",)
    assert found.features == found.extensions == ()
    assert {"timelineSemaphore", "VK_EXT_external_memory_host"} <= {*fields(
        found.optional_features)}
    assert vkrt.required_features(MLP) == found
    with closing(Description(MLP)) as description:
        assert vkrt.required_features(description) == found


def test_features_have_their_names_in_vulkan():
    by_name = {feature.name: feature for feature in vkrt.required_features().optional_features}
    timeline = by_name["timeline"]
    assert (timeline.struct, timeline.extension, timeline.core) == (
        "VkPhysicalDeviceTimelineSemaphoreFeatures", "VK_KHR_timeline_semaphore", "1.2")
    assert by_name["int64"].struct == "VkPhysicalDeviceFeatures"
    assert (by_name["storage16"].extension, by_name["storage16"].core) == ("", "1.1")


@pytest.mark.parametrize(("weights", "field"), [
    ("stream", "timelineSemaphore"), ("map", "VK_EXT_external_memory_host")])
def test_weights_may_need_a_feature(weights, field):
    found = vkrt.required_features(weights=weights)
    assert fields(found.features) == [field]
    assert field not in fields(found.optional_features)
    assert found.extensions == tuple(feature.extension for feature in found.features)


def test_a_feature_is_needed_where_a_shader_of_the_program_needs_it(monkeypatch):
    class Halved:
        """The shader library, as if all shaders computed in fp16."""

        def get(self, name):
            return shader_library().get(name)._replace(capabilities=("Shader", "Float16"))

    monkeypatch.setattr(requirements, "shader_library", Halved)
    assert fields(vkrt.required_features(MLP).features) == ["shaderFloat16"]
    assert vkrt.required_features().features == ()


def test_they_are_what_an_opened_device_has(device):
    names = {feature.name for feature in vkrt.required_features().optional_features}
    assert names - set(device.info.features) == {"VK_KHR_portability_subset"}
    assert {name for name in names if device.info.features.get(name)} == device.features & names


@pytest.mark.driver
@pytest.mark.parametrize("named", ["timelineSemaphore", "timeline"])
def test_an_adopted_device_streams_with_the_feature_and_says_so_without(named):
    x = np.ones((3, 30), np.float32)
    needed = fields(vkrt.required_features(MLP, weights="stream").features)
    with open_host(*needed) as host:
        with Device.adopt(*host.handles, 0) as device, \
                pytest.raises(vkrt.UnsupportedError, match="timelineSemaphore"):
            vkrt.load(MLP, device, weights="stream")
        with Device.adopt(*host.handles, 0, features=[named]) as device:
            with vkrt.load(MLP, device, weights="stream") as program:
                result, = program.run(x)
            with vkrt.load(MLP, device, weights="copy") as program:
                assert np.array_equal(result, program.run(x)[0])


@pytest.mark.driver
def test_an_adopted_device_maps_only_with_the_extension():
    with open_host() as host, Device.adopt(*host.handles, 0) as device:
        need_one_memory(device)
        with pytest.raises(vkrt.UnsupportedError, match="VK_EXT_external_memory_host"):
            vkrt.load(MLP, device, weights="map")
