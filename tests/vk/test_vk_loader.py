"""Library, instance and validation messages, each in a process of its own."""

import json
import os
import textwrap

import pytest
from support import MODELS, python, run_python

FAILING_OPEN = """
    from vkrt.errors import LoaderError
    from vkrt.vk.device import Device, devices
    for what in (devices, Device.open):
        try:
            what()
        except LoaderError as error:
            assert isinstance(error, OSError) and isinstance(error, RuntimeError)
            print(error.call, error)
    from vkrt.vk import live_objects
    assert not any(live_objects().values()), live_objects()
"""


def test_bad_library_names_the_path():
    lines = run_python(FAILING_OPEN, VKRT_VULKAN_LIBRARY="/nowhere/libvulkan.so").splitlines()
    assert len(lines) == 2
    assert all("/nowhere/libvulkan.so" in line and "VKRT_VULKAN_LIBRARY" in line for line in lines)


def test_library_that_is_not_vulkan():
    lines = run_python(FAILING_OPEN, VKRT_VULKAN_LIBRARY="libm.so.6").splitlines()
    assert len(lines) == 2 and all("vkGetInstanceProcAddr" in line for line in lines)


@pytest.mark.driver
def test_libraries_of_drivers_stay_loaded():
    """NVIDIA's can be loaded some two dozen times, and then never again."""
    left = run_python("""
        import vkrt
        with vkrt.Device.open():
            pass
        with open("/proc/self/maps") as file:
            print(*{line.split()[-1] for line in file if ".so" in line})
        """)
    manifest = os.environ["VK_DRIVER_FILES"]
    with open(manifest, encoding="utf-8") as file:
        library = os.path.basename(json.load(file)["ICD"]["library_path"])
    assert library in map(os.path.basename, left.split())


@pytest.mark.driver
def test_no_driver_says_what_to_install():
    missing = "/nowhere/icd.json"
    lines = run_python(FAILING_OPEN, VK_DRIVER_FILES=missing, VK_ICD_FILENAMES=missing,
                       VKRT_VALIDATION="0").splitlines()
    assert len(lines) == 2 and all("mesa-vulkan-drivers" in line for line in lines)


def test_import_opens_no_library():
    run_python("""
        import vkrt.vk.device, vkrt.vk.memory, vkrt.vk.pipeline
        with open("/proc/self/maps") as maps:
            assert "libvulkan" not in maps.read()
        """)


@pytest.mark.driver
def test_one_instance_as_long_as_a_device_is_open():
    run_python("""
        from vkrt.vk import live_objects
        from vkrt.vk.device import Device, devices
        assert devices() and live_objects()["instance"] == 0
        first, second = Device.open(), Device.open()
        assert live_objects()["instance"] == 1 and live_objects()["device"] == 2
        first.close()
        assert live_objects()["instance"] == 1 and live_objects()["device"] == 1
        second.close()
        assert not any(live_objects().values())
        with Device.open():
            assert live_objects()["instance"] == 1
        """)


def validated(code, **environment):
    """A new process that opens a device with validation and runs code; a skip without the layer."""
    done = python("-c", textwrap.dedent("""
        import sys
        from vkrt.errors import LoaderError
        from vkrt.vk import clear_validation_messages, validation_findings, validation_messages
        from vkrt.vk.device import Device
        from vkrt.vk.resource import Buffer
        try:
            device = Device.open()
        except LoaderError as error:
            assert "vulkan-validationlayers" in str(error)
            print("skip")
            sys.exit()
        """) + textwrap.dedent(code), VKRT_VALIDATION="1", **environment)
    assert done.returncode == 0, done.stderr
    if "skip" in done.stdout:
        pytest.skip("the Khronos validation layer is not installed")
    return done


@pytest.mark.driver
def test_validation_messages_are_collected():
    validated("""
        assert validation_messages() == []
        Buffer(device, 16, 0).close()  # a usage of 0 is not allowed
        assert any("usage" in m for m in validation_messages()), validation_messages()
        clear_validation_messages()
        assert validation_messages() == []
        device.close()
        """)


@pytest.mark.driver
def test_validation_messages_are_written_once_for_each_kind():
    """Also where nobody asks for them; what is found counts them all."""
    # Newer layers stop after 10 messages of a kind if they may.
    done = validated("""
        before = len(validation_messages())
        for count in range(1, 3):
            Buffer(device, 16, 0).close()  # a usage of 0 is not allowed
        findings = validation_findings()
        found, = (f for f in findings if "usage" in f.text)
        assert found.error and found.times == 2 and found.id.startswith("VUID-VkBufferCreateInfo")
        assert sum(f.times for f in findings) == len(validation_messages()) == before + 2
        while len(validation_messages()) < 1000:
            kept = len(validation_messages())
            Buffer(device, 16, 0).close()
            assert len(validation_messages()) == kept + 1
        for count in range(5):
            Buffer(device, 16, 0).close()
        lost = validation_findings()[-1]
        assert lost.id == "" and lost.times == 5 and "1000" in lost.text
        clear_validation_messages()
        assert validation_findings() == []
        device.close()
        """, VK_KHRONOS_VALIDATION_ENABLE_MESSAGE_LIMIT="false")
    assert done.stderr.count("vkrt: validation error: ") == 1, done.stderr
    assert "VUID-VkBufferCreateInfo" in done.stderr


@pytest.mark.driver
def test_leaving_everything_open_at_exit_is_harmless():
    run_python("""
        import sys
        import vkrt
        from support import inputs_of
        from vkrt.vk.device import Device
        from vkrt.vk.memory import Allocator, MemoryKind
        from vkrt.vk.resource import Buffer
        device = Device.open()
        allocator = Allocator(device)
        block = allocator.allocate(4096, 256, 0xFFFFFFFF, MemoryKind.MEMORY_DEVICE)
        buffer = Buffer(device, 64, 0x20)
        program = vkrt.load(sys.argv[1], device)
        program.run_async(*inputs_of(program))
        """, str(MODELS / "mlp.pte"))
