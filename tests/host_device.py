"""A host application with a Vulkan device of its own, made with the PyPI package `vulkan`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

VALIDATES = os.environ.get("VKRT_VALIDATION") == "1"
LAYER = "VK_LAYER_KHRONOS_validation"
SYNCHRONIZATION = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"

# Layers before 1.3.261 hold a lock of their synchronization validation while they wait for what a
# thread in vkSignalSemaphore would tell them if it got that lock, give up after ten seconds and
# say that it is most likely their own bug; it is (KhronosGroup/Vulkan-ValidationLayers, issue 4968,
# fixed by 6138). Streamed runs signal in one thread and wait in another.
LAYER_BUGS = ("UNASSIGNED-VkSemaphore-state-timeout", "UNASSIGNED-VkFence-state-timeout")

# For hosts that are processes of their own, where layers print what they find
PRINTING = {"VK_INSTANCE_LAYERS": LAYER, "VK_LAYER_ENABLES": SYNCHRONIZATION,
            "VK_LAYER_MESSAGE_ID_FILTER": ":".join(LAYER_BUGS)} if VALIDATES else {}


# Without it drivers may compute other bits than on a device of vkrt's own: see
# vkrt/core/nan_mode.pxd.
FLOAT_CONTROLS = "VK_KHR_shader_float_controls"


class Host:
    """Instance, device and a queue of family 0. Made by `open_host`. The validation layer's words
    are in `messages`, names of extensions that are enabled in any case in `always`."""

    def __init__(self, features: Sequence[str], version: tuple[int, int]):
        self.vk = vk = pytest.importorskip(
            "vulkan", reason="the PyPI package vulkan is not installed")
        self.messages: list[str] = []
        self._made: list[HostBuffer] = []
        self._semaphores: list[Any] = []
        application = vk.VkApplicationInfo(
            pApplicationName="host", applicationVersion=0, pEngineName="", engineVersion=0,
            apiVersion=vk.VK_MAKE_VERSION(*version, 0))
        layers, extensions = ([LAYER], ["VK_EXT_debug_utils"]) if VALIDATES else ([], [])
        if VALIDATES:
            os.environ["VK_LAYER_ENABLES"] = SYNCHRONIZATION
        self.instance = vk.vkCreateInstance(
            vk.VkInstanceCreateInfo(pApplicationInfo=application, ppEnabledLayerNames=layers,
                                    ppEnabledExtensionNames=extensions), None)
        self._messenger = self._listen() if VALIDATES else None
        self.physical = vk.vkEnumeratePhysicalDevices(self.instance)[0]
        has = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(
            self.physical, None)}
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])
        chain = None
        self.always = (FLOAT_CONTROLS,) if FLOAT_CONTROLS in has else ()
        wanted = [*self.always, *(name for name in features
                                  if name.startswith("VK_") and name in has)]
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
            text = vk.ffi.string(data.pMessage).decode()
            if not any(bug in text for bug in LAYER_BUGS):
                self.messages.append(text)
            return 0

        create = vk.vkGetInstanceProcAddr(self.instance, "vkCreateDebugUtilsMessengerEXT")
        return create(self.instance, vk.VkDebugUtilsMessengerCreateInfoEXT(
            messageSeverity=vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT
            | vk.VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
            messageType=vk.VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
            pfnUserCallback=told), None)

    def buffer(self, nbytes: int, usage: int = 0) -> HostBuffer:
        """A buffer that kernels can use, in memory that the host sees; closed with the host."""
        made = HostBuffer(self, nbytes, usage)
        self._made.append(made)
        return made

    def release(self, buffer: HostBuffer) -> None:
        self._made.remove(buffer)
        buffer.close()

    def semaphore(self, timeline: bool = False) -> Any:
        """A VkSemaphore, timelines from 0 on; closed with the host."""
        vk = self.vk
        kind = vk.VkSemaphoreTypeCreateInfo(
            semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0) if timeline else None
        made = vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
        self._semaphores.append(made)
        return made

    def submit(self, wait: Any = None, signal: Any = None) -> None:
        """Submits nothing, behind one binary semaphore and before another, and waits for it."""
        vk = self.vk
        fence = vk.vkCreateFence(self.device, vk.VkFenceCreateInfo(), None)
        vk.vkQueueSubmit(self.queue, 1, [vk.VkSubmitInfo(
            pWaitSemaphores=[wait] if wait else [], waitSemaphoreCount=1 if wait else 0,
            pWaitDstStageMask=[vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT] if wait else [],
            pSignalSemaphores=[signal] if signal else [])], fence)
        vk.vkWaitForFences(self.device, 1, [fence], vk.VK_TRUE, 10**10)
        vk.vkDestroyFence(self.device, fence, None)

    def value(self, semaphore: Any) -> int:
        """What a timeline semaphore has reached."""
        get = self.vk.vkGetDeviceProcAddr(self.device, "vkGetSemaphoreCounterValueKHR")
        return get(self.device, semaphore)

    def signal(self, semaphore: Any, value: int) -> None:
        """Raises a timeline semaphore from the host."""
        vk = self.vk
        vk.vkGetDeviceProcAddr(self.device, "vkSignalSemaphoreKHR")(
            self.device, vk.VkSemaphoreSignalInfo(semaphore=semaphore, value=value))

    def close(self) -> None:
        vk = self.vk
        for made in self._made:
            made.close()
        for semaphore in self._semaphores:
            vk.vkDestroySemaphore(self.device, semaphore, None)
        vk.vkDeviceWaitIdle(self.device)
        vk.vkDestroyDevice(self.device, None)
        if self._messenger is not None:
            vk.vkGetInstanceProcAddr(self.instance, "vkDestroyDebugUtilsMessengerEXT")(
                self.instance, self._messenger, None)
        vk.vkDestroyInstance(self.instance, None)


class HostBuffer:
    """A VkBuffer of a host (`handle`, as the package `vulkan` has it), in coherent memory that it
    has mapped (`bytes`, an array of uint8). Made by `Host.buffer`."""

    def __init__(self, host: Host, nbytes: int, usage: int = 0):
        self._host = host
        vk, device = host.vk, host.device
        usage = usage or (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | vk.VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT)
        self.handle = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(
            size=nbytes, usage=usage, sharingMode=vk.VK_SHARING_MODE_EXCLUSIVE), None)
        needs = vk.vkGetBufferMemoryRequirements(device, self.handle)
        # The array of types is a part of this, and goes with it.
        has = vk.vkGetPhysicalDeviceMemoryProperties(host.physical)
        wanted = (vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
        suits = next(i for i in range(32) if needs.memoryTypeBits >> i & 1
                     and has.memoryTypes[i].propertyFlags & wanted == wanted)
        self._memory = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(
            allocationSize=needs.size, memoryTypeIndex=suits), None)
        vk.vkBindBufferMemory(device, self.handle, self._memory, 0)
        self.bytes = np.frombuffer(vk.vkMapMemory(device, self._memory, 0, nbytes, 0), np.uint8)

    def close(self) -> None:
        vk, device = self._host.vk, self._host.device
        vk.vkUnmapMemory(device, self._memory)
        vk.vkDestroyBuffer(device, self.handle, None)
        vk.vkFreeMemory(device, self._memory, None)


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
    """The address of a vkGetInstanceProcAddr that gives out other device functions, and what has
    to be kept alive as long as it is used.

    Args:
        names: name of a device function -> what makes a function of ctypes of its address.
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
