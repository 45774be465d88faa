"""What the core knows of drivers, for hosts without Python."""

import ctypes

import pytest
from core_alone import Error, core, room
from core_build import needs_build

import vkrt
from vkrt.device.policy import policy_of

pytestmark = [pytest.mark.driver, needs_build]


class Workarounds(ctypes.Structure):
    """As vkrt/core/workarounds.pxd has it."""

    _fields_ = [("avoid_recompile_padding", ctypes.c_int), ("loop_limit", ctypes.c_int64),
                ("max_texels", ctypes.c_int64), ("maps_files", ctypes.c_int)]


def test_what_is_known_of_the_driver():
    """The same as the package's profile says of it."""
    with vkrt.Device.open() as device:
        policy = policy_of(device.info)
    library, error, instance, physical = core(), Error(), ctypes.c_void_p(), room()
    library.vkrt_workarounds_of.restype = Workarounds
    assert library.vkrt_acquire_instance(ctypes.byref(instance), ctypes.byref(error)) == 0
    assert library.vkrt_choose_device(instance, None, physical, ctypes.byref(error)) == 0
    known = library.vkrt_workarounds_of(physical)
    library.vkrt_free_physical(physical)
    assert library.vkrt_choose_device(instance, b"no such device", physical,
                                      ctypes.byref(error)) == 3
    text = error.text.decode()
    library.vkrt_release_instance(instance)
    assert (bool(known.avoid_recompile_padding), known.loop_limit or None, known.max_texels or None,
            bool(known.maps_files)) == (policy.avoid_recompile_padding, policy.loop_limit,
                                        policy.max_texels, policy.maps_files)
    assert text.startswith("no Vulkan device is 'no such device': 0 is ")
