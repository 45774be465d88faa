# cython: language_level=3
"""Devices: listing them, opening one, using one that somebody else opened.

A device has one compute queue, and one for copies where there is such a family. Its children
(buffers, pipelines, ..) hold it, so `close()` is safe at any time: what is in use is destroyed
when the last child is closed.
"""

import os
from vkrt.dataclass import replace

cimport cython
from cpython.exc cimport PyErr_SetInterrupt
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock,
    WAIT_LOCK,
)
from libc.stdint cimport uint32_t
from libc.string cimport memset

from vkrt.vk.api cimport *
from vkrt.vk.check cimport ABANDONED, DEVICE, PIPELINE_CACHE, SAMPLER, Kind, check, count
from vkrt.vk.given_up cimport watch_until_idle
from vkrt.vk.loader cimport acquire_instance, adopt_instance
from vkrt.vk.physical cimport (
    FeatureChain, check_family, check_version, common_version, compute_family, describe,
    link_features, set_features, timestamp_bits_of, upload_family, usable_devices,
    wanted_extensions,
)
from vkrt.vk.process cimport FORKED, forked_from_user, stop_calls, unwatch, watch
from vkrt.vk.table cimport fill_device_table

from vkrt.errors import ClosedError, DeviceLostError, ForkedError, InputError, LoaderError
from vkrt.vk import pretence
from vkrt.vk.check import error_of
from vkrt.vk.cache_file import check_option
from vkrt.vk.info import DeviceInfo
from vkrt.vk.loader import no_driver
from vkrt.vk.memory_types import reads_slowly, shares_memory
from vkrt.vk.physical import feature_names
from vkrt.work.handles import address_of

cdef extern from * nogil:
    """
    #include <time.h>
    static inline void vkrt_nap_of(long nanoseconds) {
        struct timespec time = {0, nanoseconds};
        nanosleep(&time, NULL);
    }
    """
    void nap "vkrt_nap_of"(long nanoseconds)

# A wait that fails is tried so often, with naps between, in nanoseconds: a second together.
cdef int ATTEMPTS = 100
cdef long NAP = 10_000_000

PREFERENCE = ("discrete", "integrated", "virtual", "cpu", "other")


def devices():
    """The devices vkrt can use (Vulkan 1.1 and a compute queue), as a list of `DeviceInfo`.

    Raises:
        LoaderError: there is no Vulkan library or no driver.
    """
    cdef Instance instance = acquire_instance()
    try:
        return [info for _, info in usable_devices(instance)]
    finally:
        instance.release()


def choose(found, selector):
    """The entry of `found` [(address, DeviceInfo), ..] that a selector means."""
    if not found:
        raise LoaderError(f"there is no Vulkan device with a compute queue: {no_driver()}",
                          call="vkEnumeratePhysicalDevices")
    if selector is None:
        return min(found, key=lambda entry: PREFERENCE.index(entry[1].type))
    if isinstance(selector, DeviceInfo):
        matching = [e for e in found if e[1].name == selector.name
                    and (e[1].vendor_id, e[1].device_id)
                    == (selector.vendor_id, selector.device_id)]
        # Equal cards differ by their position only.
        matching = [e for e in matching if e[1].index == selector.index] or matching
    elif isinstance(selector, str):
        wanted = selector.lower()
        matching = ([e for e in found if e[1].type == wanted]
                    or [e for e in found if wanted in e[1].name.lower()])
    elif isinstance(selector, int):
        matching = [e for e in found if e[1].index == selector]
    else:
        raise InputError(f"device: expected an index, a name or a DeviceInfo, got {selector!r}")
    if not matching:
        names = "; ".join(f"{info.index} is {info.name} ({info.type})" for _, info in found)
        raise InputError(f"no Vulkan device is {selector!r}: {names}; name one by its index, a "
                         "part of its name, or cpu, integrated or discrete")
    return matching[0]


def check_fork(info):
    """Refuses devices of drivers that do not work in a child which was forked while they ran.

    What a driver keeps for the whole process (threads, connections to the kernel) is still there,
    as far as a fork copies it. Llvmpipe has all of that in the instance, and the child makes its
    own; SwiftShader waits forever for threads that only the parent has; others are not known.
    """
    if forked_from_user() and info.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE:
        raise ForkedError(
            f"process {os.getpid()} was forked while a Vulkan device was open, and the driver of "
            f"{info.name} cannot be used in such a process; fork before the first device is opened "
            "(or after all are closed), or start the process anew (multiprocessing: 'spawn')")


@cython.no_gc_clear
cdef class Device:
    """A Vulkan device, its compute queue and, where it has one, a queue for copies.

    Made by `open` or `adopt`; a context manager.

    Submissions from several threads are put one after another.

    Attributes:
        info: the `DeviceInfo`.
        features: names of the enabled features.
        unified: whether host and device share one memory.
        reads_slowly: whether the host reads that memory past its cache and has a cache of other.
        queue_family: index of the compute queue's family.
        upload_family: index of the family of the queue for copies; the same where there is none.
        api_version: Vulkan version in use, as Vulkan encodes it.
        timestamp_period: nanoseconds per tick of a timestamp.
        timestamp_bits: valid bits of a timestamp, 0 when there are none.
        pipeline_cache_option: see `open`; "off" for adopted devices.
        closed: whether `close` was called.
        process: id of the process that opened it.
    """

    def __cinit__(self):
        self.queue_lock = PyThread_allocate_lock()
        if self.queue_lock == NULL:
            raise MemoryError

    def __init__(self):
        raise TypeError("use Device.open() or Device.adopt()")

    @staticmethod
    def open(selector=None, *, pipeline_cache="auto"):
        """Opens a device.

        Args:
            selector: an index of `devices()`, a type ("discrete", "integrated", "virtual", "cpu"),
                a part of the name, a `DeviceInfo`, or None for the first discrete GPU, else
                integrated, virtual, CPU.
            pipeline_cache: the file that keeps compiled pipelines: "auto" (in the user's cache
                folder, if the driver has something to keep), "off", or a path. A file that others
                can write is not used.

        Raises:
            LoaderError: no library, driver or device.
            InputError: the selector fits none, or the path is that of a file that is no pipeline
                cache, which is not written over.
            ForkedError: this process was forked from one with an open device, and the driver cannot
                start anew in such a child.
        """
        cdef Device device = Device.__new__(Device)
        cdef size_t address
        device.pipeline_cache_option = check_option(pipeline_cache)
        device.instance = acquire_instance()
        try:
            address, device.info = choose(usable_devices(device.instance), selector)
            check_fork(device.info)
            device.physical = <VkPhysicalDevice>address
            device.create()
        except BaseException:
            device.close()
            raise
        return device

    @staticmethod
    def adopt(instance, physical_device, device, queue, queue_family, *, features=(),
              get_instance_proc_addr=None, lock=None):
        """Uses a device of the host application, without owning it.

        The instance must be of Vulkan 1.1 or later. The application keeps the handles alive until
        this object and everything made of it is closed. Meanwhile its other threads use the queue
        only while they hold `lock`; without one they do not use it.

        Args:
            instance, physical_device, device, queue: handles as int, ctypes or cffi pointers.
            queue_family: index of the family of `queue`, which has to do compute.
            features: names of the features and extensions that were enabled when the device was
                created, as Vulkan has them (see `vkrt.required_features`), or keys of
                `DeviceInfo.features`; vkrt uses no others.
            get_instance_proc_addr: address of vkGetInstanceProcAddr where it is not the one of
                the library that vkrt opens.
            lock: serializes the queue: a context manager such as a `threading.Lock`, or a tuple
                (lock, unlock, data) of the addresses of two functions of C, `void f(void *data)`,
                and of what they are given. Every vkQueueSubmit of vkrt on that queue is made while
                it is held, and nothing else is; vkrt calls neither vkQueueWaitIdle nor
                vkQueueBindSparse. Any thread takes it, and the one that has taken it gives it back.
                What it raises when it is taken ends the call that was to submit; an error when it
                is given back goes to `sys.unraisablehook`, as the device is at work by then.

        Raises:
            InputError: an argument is no handle, there is no such family, it does no compute, or
                the device does not have a feature.
            UnsupportedError: the device's Vulkan is older than 1.1. What a program needs beyond
                that is asked for when it is loaded, and named then.
        """
        cdef Device self = Device.__new__(Device)
        self.pipeline_cache_option = "off"
        cdef size_t address = address_of(instance, "instance")
        cdef size_t entry = 0
        if get_instance_proc_addr is not None:
            entry = address_of(get_instance_proc_addr, "get_instance_proc_addr")
        cdef size_t physical = address_of(physical_device, "physical_device")
        cdef size_t handle = address_of(device, "device")
        cdef size_t queue_handle = address_of(queue, "queue")
        self.instance = adopt_instance(<VkInstance>address, <PFN_vkGetInstanceProcAddr>entry)
        try:
            self.physical = <VkPhysicalDevice>physical
            check_version(self.instance, self.physical)
            self.info = describe(self.instance, self.physical, 0)
            check_family(self.instance, self.physical, queue_family)
            has = timestamp_bits_of(self.instance, self.physical, queue_family) > 0
            self.info = replace(self.info, features={**self.info.features, "timestamps": has})
            # Extensions that allow nothing more may be named like the others.
            enabled = feature_names(features) - set(self.info.extensions)
            unknown = enabled - {name for name, has in self.info.features.items() if has}
            if unknown:
                raise InputError(f"features the device does not have: {sorted(unknown)}")
            # What subgroups can do is not switched on: a device has it or not.
            self.features = frozenset(enabled | {
                name for name, has in self.info.features.items()
                if has and name.startswith("subgroup_")})
            self.handle = <VkDevice>handle
            count(DEVICE, 1)
            self.queue = <VkQueue>queue_handle
            self.set_host_lock(lock)
            self.start(queue_family)
        except BaseException:
            self.close()
            raise
        return self

    cdef int create(self) except -1:
        """Creates the VkDevice with the features vkrt uses, as far as they are there."""
        cdef FeatureChain chain
        cdef VkDeviceQueueCreateInfo queues[2]
        cdef VkDeviceCreateInfo info
        cdef const char* names[16]
        cdef int i
        cdef float priority = 1
        cdef uint32_t version = common_version(self.instance, self.physical)
        cdef int family = compute_family(self.instance, self.physical)
        cdef int other = upload_family(self.instance, self.physical, family)
        cdef VkDevice handle = NULL

        available = [name for name, has in self.info.features.items() if has]
        link_features(&chain, version, self.info.extensions)
        set_features(&chain, available)
        memset(queues, 0, sizeof(queues))
        memset(&info, 0, sizeof(info))
        for i in range(2):
            queues[i].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO
            queues[i].queueFamilyIndex = other if i else family
            queues[i].queueCount = 1
            queues[i].pQueuePriorities = &priority
        info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO
        info.pNext = &chain.core
        info.queueCreateInfoCount = 1 if other == family else 2
        info.pQueueCreateInfos = queues
        extensions = wanted_extensions(version, self.info.extensions)
        for name in extensions:
            names[info.enabledExtensionCount] = <bytes>name
            info.enabledExtensionCount += 1
        info.ppEnabledExtensionNames = names
        check(self.instance.vk.vkCreateDevice(self.physical, &info, NULL, &handle),
              b"vkCreateDevice")
        self.handle = handle
        self.owned = True
        count(DEVICE, 1)
        self.features = frozenset(available)
        self.start(family)
        if other != family:
            self.upload_family = other
            self.vk.vkGetDeviceQueue(handle, other, 0, &self.upload_queue)
        return 0

    cdef int start(self, uint32_t family) except -1:
        """What an opened and an adopted device have in common."""
        fill_device_table(&self.vk, self.instance.vk.vkGetDeviceProcAddr, self.handle)
        watch(&self.calls, &self.vk, sizeof(self.vk))
        self.process = os.getpid()
        self.queue_family = family
        self.api_version = common_version(self.instance, self.physical)
        if self.owned:
            self.vk.vkGetDeviceQueue(self.handle, family, 0, &self.queue)
        self.upload_family, self.upload_queue = family, self.queue
        self.timestamp_bits = timestamp_bits_of(self.instance, self.physical, family)
        self.timestamp_period = self.info.limits["timestampPeriod"]
        self.instance.vk.vkGetPhysicalDeviceMemoryProperties(self.physical,
                                                             &self.memory_properties)
        self.remove_on_free = self.info.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE
        seems = pretence.current
        self.info = seems.described(self.info)
        self.pretends = bool(seems.memory_types)
        self.loses_imports = seems.loses_imports
        types = self.info.memory_types
        self.unified = (self.info.type in ("cpu", "integrated") and not seems.discrete
                        and shares_memory(types))
        self.reads_slowly = self.unified and reads_slowly(types)
        return 0

    def close(self):
        """Closes the device; at once, or when the last object made of it is closed."""
        self.closed = True
        if self.children == 0:
            self.destroy()

    @property
    def inherited(self):
        """Whether it was opened in another process, from which this one was forked: it cannot be
        used here, and closing it releases nothing."""
        return self.calls.inherited

    def check_process(self):
        """Raises where no call may reach the driver.

        Raises:
            ForkedError: the device is `inherited`.
            DeviceLostError: it was given up.
        """
        if self.calls.inherited:
            raise ForkedError(
                f"process {os.getpid()} was forked from process {self.process}, which has opened "
                f"{self.info.name} and goes on using it; in the child, open the device, or load "
                "the program, after the fork")
        if self.calls.given_up:
            raise DeviceLostError(f"{self.info.name} was given up; open it, or load the program, "
                                  "again")

    cdef int retain(self) except -1:
        if self.calls.inherited or self.calls.given_up:
            self.check_process()
        if self.closed:
            raise ClosedError(f"{self.info.name} is closed; open the device again")
        self.children += 1
        return 0

    cdef int created(self, VkResult result, Kind kind, const char* call) except -1:
        if <int>result < 0:
            self.release()
            check(result, call)
        count(kind, 1)
        return 0

    cdef void destroyed(self, Kind kind) noexcept:
        self.uncount(kind)
        self.release()

    cdef void uncount(self, Kind kind) noexcept:
        count(kind, -1)
        if self.calls.given_up:
            count(ABANDONED, 1)

    cdef int wait_failed(self, int result, int* failures, const char* call) except -1 nogil:
        # A device that is lost is at work on nothing.
        if result == VK_ERROR_DEVICE_LOST or self.calls.inherited:
            check(<VkResult>result, call)
        failures[0] += 1
        if failures[0] < ATTEMPTS:
            nap(NAP)
            return 0
        with gil:
            self.give_up(error_of(result, call.decode()))

    cdef int give_up(self, reason) except -1:
        if self.owned and not self.calls.given_up and not self.calls.inherited:
            watch_until_idle(self.handle, self.vk.vkDeviceWaitIdle, <void*>self.queue_lock, self)
        stop_calls(&self.calls)
        raise DeviceLostError(
            f"{reason}: nobody can tell when {self.info.name} is done with what it was given, so "
            "the device is given up, with everything that was made of it; open it, or load the "
            "program, again", VK_ERROR_DEVICE_LOST)

    cdef void release(self) noexcept:
        self.children -= 1
        if self.closed and self.children == 0:
            self.destroy()

    cdef void destroy(self) noexcept:
        cdef VkDevice handle = self.handle
        cdef Instance instance = self.instance
        self.handle = NULL
        self.instance = None
        if handle != NULL:
            if self.nearest != NULL:
                self.vk.vkDestroySampler(handle, self.nearest, NULL)
                self.nearest = NULL
                count(SAMPLER, -1)
            if self.pipeline_cache != NULL:
                self.vk.vkDestroyPipelineCache(handle, self.pipeline_cache, NULL)
                self.pipeline_cache = NULL
                count(PIPELINE_CACHE, -1)
            if self.owned and self.vk.vkDestroyDevice != NULL:
                with nogil:
                    self.vk.vkDeviceWaitIdle(handle)
                    self.vk.vkDestroyDevice(handle, NULL)
            self.uncount(DEVICE)
        unwatch(&self.calls)
        # An instance may not go before its devices, of which one that is given up stays.
        if instance is not None and not (self.calls.given_up and self.owned):
            instance.release()

    cdef VkSampler sampler(self) except NULL:
        cdef VkSamplerCreateInfo info
        cdef VkSampler made = NULL
        if self.nearest == NULL:
            memset(&info, 0, sizeof(info))
            info.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO
            info.magFilter = VK_FILTER_NEAREST
            info.minFilter = VK_FILTER_NEAREST
            info.mipmapMode = VK_SAMPLER_MIPMAP_MODE_NEAREST
            info.addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
            info.addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
            info.addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE
            check(self.vk.vkCreateSampler(self.handle, &info, NULL, &made),
                  b"vkCreateSampler")
            self.nearest = made
            count(SAMPLER, 1)
        return self.nearest

    cdef int submit(self, VkQueue queue, const VkSubmitInfo* info,
                    VkFence fence) except? RAISED nogil:
        cdef int result
        if self.calls.inherited:  # a thread of the parent may have held the lock
            return FORKED
        if self.calls.given_up:  # a thread may be in a call that does not return
            return VK_ERROR_DEVICE_LOST
        if self.loses_imports and self.imports:
            return VK_ERROR_DEVICE_LOST
        # The host's lock first: who waits for it may have to let go of the GIL, for which others
        # may wait who hold the device's own.
        if self.lock_host != NULL:
            self.lock_host(self.host_data)
        elif self.host_lock is not None:
            with gil:
                self.enter_host_lock()
        PyThread_acquire_lock(self.queue_lock, WAIT_LOCK)
        result = self.vk.vkQueueSubmit(queue, 1, info, fence)
        PyThread_release_lock(self.queue_lock)
        if self.unlock_host != NULL:
            self.unlock_host(self.host_data)
        elif self.host_lock is not None:
            with gil:
                self.exit_host_lock()
        return result

    cdef int set_host_lock(self, lock) except -1:
        cdef size_t address
        if isinstance(lock, tuple):
            if len(lock) != 3:
                raise InputError(f"lock: expected (lock, unlock, data), got {len(lock)} values")
            address = address_of(lock[0], "lock")
            self.lock_host = <HostLock>address
            address = address_of(lock[1], "unlock")
            self.unlock_host = <HostLock>address
            address = lock[2] or 0
            self.host_data = <void*>address
        elif lock is not None:
            if not (hasattr(type(lock), "__enter__") and hasattr(type(lock), "__exit__")):
                raise InputError("lock: expected a context manager or (lock, unlock, data), got "
                                 f"{lock!r}")
            self.host_lock = lock
        return 0

    cdef int enter_host_lock(self) except -1:
        type(self.host_lock).__enter__(self.host_lock)
        return 0

    cdef void exit_host_lock(self) noexcept:
        try:
            type(self.host_lock).__exit__(self.host_lock, None, None, None)
        except KeyboardInterrupt:
            PyErr_SetInterrupt()  # for whoever waits for the device

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        self.destroy()
        if self.queue_lock != NULL:
            PyThread_free_lock(self.queue_lock)

    def __repr__(self):
        name = self.info.name if self.info is not None else "?"
        return f"<vkrt.Device {name}{', closed' if self.closed else ''}>"

    def __reduce__(self):
        raise TypeError("a Device cannot be copied or sent to another process: pass its name or "
                        "number, and call vkrt.Device.open there")
