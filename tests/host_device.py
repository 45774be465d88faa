"""A host application with a Vulkan device of its own, made with the PyPI package `vulkan`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

VALIDATES = os.environ.get("VKRT_VALIDATION") == "1"
LAYER = "VK_LAYER_KHRONOS_validation"


class Host:
    """Instance, device and a queue of family 0. Made by `open_host`.

    Attributes:
        messages: what the validation layer has said.
    """

    def __init__(self, features: Sequence[str], version: tuple[int, int]):
        self.vk = vk = pytest.importorskip(
            "vulkan", reason="the PyPI package vulkan is not installed")
        self.messages: list[str] = []
        application = vk.VkApplicationInfo(
            pApplicationName="host", applicationVersion=0, pEngineName="", engineVersion=0,
            apiVersion=vk.VK_MAKE_VERSION(*version, 0))
        layers, extensions = ([LAYER], ["VK_EXT_debug_utils"]) if VALIDATES else ([], [])
        if VALIDATES:
            os.environ["VK_LAYER_ENABLES"] = (
                "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
        self.instance = vk.vkCreateInstance(
            vk.VkInstanceCreateInfo(pApplicationInfo=application, ppEnabledLayerNames=layers,
                                    ppEnabledExtensionNames=extensions), None)
        self._messenger = self._listen() if VALIDATES else None
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        has = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(
            self.physical, None)}
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1,
                                           pQueuePriorities=[1.0])
        chain = None
        wanted = [name for name in features if name.startswith("VK_") and name in has]
        if "timelineSemaphore" in features:
            chain = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(timelineSemaphore=1)
            wanted.append("VK_KHR_timeline_semaphore")
        self.device = vk.vkCreateDevice(
            self.physical,
            vk.VkDeviceCreateInfo(pNext=chain, pQueueCreateInfos=[queue],
                                  ppEnabledExtensionNames=wanted), None)
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)

    @property
    def handles(self) -> tuple[Any, ...]:
        """What `Device.adopt` takes first."""
        return self.instance, self.physical, self.device, self.queue

    def _listen(self) -> Any:
        vk = self.vk

        def told(severity, kind, data, user):
            self.messages.append(vk.ffi.string(data.pMessage).decode())
            return 0

        create = vk.vkGetInstanceProcAddr(self.instance, "vkCreateDebugUtilsMessengerEXT")
        return create(self.instance, vk.VkDebugUtilsMessengerCreateInfoEXT(
            messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
            | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
            messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
            pfnUserCallback=told), None)

    def close(self) -> None:
        vk = self.vk
        vk.vkDeviceWaitIdle(self.device)
        vk.vkDestroyDevice(self.device, None)
        if self._messenger is not None:
            vk.vkGetInstanceProcAddr(self.instance, "vkDestroyDebugUtilsMessengerEXT")(
                self.instance, self._messenger, None)
        vk.vkDestroyInstance(self.instance, None)


@contextmanager
def open_host(*features: str, version: tuple[int, int] = (1, 1)) -> Iterator[Host]:
    """A host whose device has these features (fields of Vulkan structs) and extensions.

    Under VKRT_VALIDATION=1 the validation layer is in it, and no message may have come.
    """
    host = Host(features, version)
    try:
        yield host
    finally:
        host.close()
    assert not host.messages, host.messages


def spied(names: dict[bytes, Callable[[Any], Any]]) -> tuple[int, list[Any]]:
    """Address of a vkGetInstanceProcAddr that gives out other device functions.

    Args:
        names: name of a device function -> what makes a function of ctypes of its address.

    Returns:
        The address, and what has to be kept alive as long as it is used.
    """
    library = ctypes.CDLL("libvulkan.so.1")
    address = ctypes.c_void_p
    library.vkGetInstanceProcAddr.restype = address
    library.vkGetInstanceProcAddr.argtypes = [address, ctypes.c_char_p]
    finder = ctypes.CFUNCTYPE(address, address, ctypes.c_char_p)
    kept: list[Any] = []

    def of_instance(instance, name):
        found = library.vkGetInstanceProcAddr(instance, name)
        if name != b"vkGetDeviceProcAddr":
            return found

        def of_device(device, name):
            real = finder(found)(device, name)
            if name not in names or not real:
                return real
            kept.append(names[name](real))
            return ctypes.cast(kept[-1], address).value

        kept.append(finder(of_device))
        return ctypes.cast(kept[-1], address).value

    kept.append(finder(of_instance))
    return ctypes.cast(kept[-1], address).value, kept
