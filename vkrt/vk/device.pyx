"""Devices: listing them, opening one, using one that somebody else opened.

A device has one compute queue, and one for copies where there is such a family. Its children
(buffers, pipelines, ..) hold it, so `close()` is safe at any time: what is in use is destroyed
when the last child is closed.
"""

import atexit
import os

cimport cython
from cpython.exc cimport PyErr_SetInterrupt, PyErr_SetObject

from vkrt.core.device cimport (
    QueueLock, adopt_device, check_usable, close_device, describe_memory, open_device,
    wait_for_given_up,
)
from vkrt.core.device_choice cimport say_no_device
from vkrt.core.error cimport VKRT_ERROR_CANCELLED, VKRT_OK, Error, fail
from vkrt.core.instance cimport Instance, acquire_instance, adopt_instance, release_instance
from vkrt.core.physical cimport Physical, check_family, free_physical, read_physical, timestamp_bits
from vkrt.core.pipeline_file cimport close_pipeline_file, owner_of
from vkrt.core.process cimport forked_after_use, forked_from_user
from vkrt.core.vulkan cimport *
from vkrt.vk.check cimport check_status
from vkrt.vk.memory_types cimport fill_properties
from vkrt.vk.physical cimport describe, feature_set, list_devices

from dataclasses import replace
from vkrt.errors import ForkedError, InputError, LoaderError
from vkrt.vk import device_override
from vkrt.vk.cache_folder import check_option
from vkrt.vk.physical import feature_names
from vkrt.vk.selector import choose
from vkrt.work.handles import address_of


@atexit.register
def wait_at_exit():
    """Waits until the devices that were given up are idle, for 5 seconds at most."""
    with nogil:
        wait_for_given_up()


def devices():
    """The devices vkrt can use (Vulkan 1.1 and a compute queue), as a list of `DeviceInfo`.

    Raises:
        LoaderError: there is no Vulkan library or no driver.
    """
    cdef Error error
    cdef Instance* instance
    check_status(acquire_instance(&instance, &error), &error)
    try:
        return [info for _, info in list_devices(instance)]
    finally:
        release_instance(instance)


def no_device():
    """Why there is no device that vkrt can use, and what to do, for messages.

    Raises:
        LoaderError: there is no Vulkan library or no driver.
    """
    cdef char[400] text
    cdef Error error
    cdef Instance* instance
    check_status(acquire_instance(&instance, &error), &error)
    try:
        return say_no_device(instance, text, sizeof(text)).decode(errors="replace")
    finally:
        release_instance(instance)


def check_fork(info):
    """Refuses devices of drivers that do not work in a child which was forked while they ran.

    What a driver keeps for the whole process (threads, connections to the kernel) is still there,
    as far as a fork copies it. Llvmpipe has all of that in the instance, and the child makes its
    own; SwiftShader waits forever for threads that only the parent has; others are not known.
    """
    if forked_from_user() and info.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE:
        raise forked_error(info, "while a Vulkan device was open")


def forked_error(info, when):
    return ForkedError(
        f"process {os.getpid()} was forked {when}, and the driver of {info.name} cannot be used in "
        "such a process; fork before the first device is opened, or start the process anew "
        "(multiprocessing: 'spawn')")


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
        cdef Error error
        cdef Instance* instance
        cdef Physical physical
        cdef size_t address
        cdef int status
        device.pipeline_cache_option = check_option(pipeline_cache)
        check_status(acquire_instance(&instance, &error), &error)
        physical.extensions = NULL
        try:
            found = list_devices(instance)
            if not found:
                raise LoaderError(f"there is no Vulkan device that vkrt can use: {no_device()}",
                                  call="vkEnumeratePhysicalDevices")
            address, info = choose(found, selector)
            check_fork(info)
            check_status(read_physical(instance, <VkPhysicalDevice>address, &physical, &error),
                         &error)
            status = open_device(instance, &physical, &device.core, &error)
            if status != VKRT_OK and forked_after_use():
                # NVIDIA's keeps something for the process even when all devices are closed.
                raise forked_error(info, "after a Vulkan device had been opened")
            check_status(status, &error)
            device.owner = owner_of(&physical)
            device.started(info)
        finally:
            free_physical(&physical)
            release_instance(instance)
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
        cdef Error error
        cdef Instance* own
        cdef Physical physical
        cdef size_t entry = 0
        cdef size_t address = address_of(instance, "instance")
        if get_instance_proc_addr is not None:
            entry = address_of(get_instance_proc_addr, "get_instance_proc_addr")
        cdef size_t physical_address = address_of(physical_device, "physical_device")
        cdef size_t handle = address_of(device, "device")
        cdef size_t queue_handle = address_of(queue, "queue")
        self.pipeline_cache_option = "off"
        check_status(adopt_instance(<VkInstance>address, <PFN_vkGetInstanceProcAddr>entry, &own,
                                    &error), &error)
        physical.extensions = NULL
        try:
            check_status(read_physical(own, <VkPhysicalDevice>physical_address, &physical, &error),
                         &error)
            check_status(check_family(&physical, queue_family, &error), &error)
            info = describe(&physical, 0)
            has = timestamp_bits(&physical, queue_family) > 0
            info = replace(info, features={**info.features, "timestamps": has})
            # Extensions that allow nothing more may be named like the others.
            enabled = feature_names(features) - set(info.extensions)
            unknown = enabled - {name for name, has in info.features.items() if has}
            if unknown:
                raise InputError(f"features the device does not have: {sorted(unknown)}")
            # What subgroups can do, and how fast products are, is not switched on.
            self.features = frozenset(enabled | {
                name for name, has in info.features.items()
                if has and name.startswith(("subgroup_", "accelerated_"))})
            check_status(adopt_device(&self.core, own, &physical, <VkDevice>handle,
                                      <VkQueue>queue_handle, queue_family,
                                      feature_set(self.features), &error), &error)
            self.owner = owner_of(&physical)
            self.set_host_lock(lock)
            self.started(info)
        finally:
            free_physical(&physical)
            release_instance(own)
        return self

    cdef int started(self, info) except -1:
        """What an opened and an adopted device have in common."""
        cdef VkPhysicalDeviceMemoryProperties memory
        seems = device_override.current
        if self.features is None:
            self.features = frozenset(name for name, has in info.features.items() if has)
        self.info = seems.described(info)
        self.core.has_overrides = bool(seems.memory_types)
        limits = self.info.limits
        self.core.max_allocation = limits["maxMemoryAllocationSize"]
        self.core.atom = limits["nonCoherentAtomSize"]
        if self.core.import_alignment:
            self.core.import_alignment = limits["minImportedHostPointerAlignment"]
        if self.core.has_overrides or seems.discrete:
            fill_properties(&memory, self.info.heaps, self.info.memory_types)
            describe_memory(&self.core, &memory,
                            seems.discrete or self.info.type not in ("cpu", "integrated"))
        return 0

    def close(self):
        """Closes the device; at once, or when the last object made of it is closed."""
        if self.core.users > 0:
            with nogil:
                close_device(&self.core)

    @property
    def closed(self):
        return bool(self.core.closed)

    @property
    def process(self):
        return self.core.process

    @property
    def unified(self):
        return bool(self.core.unified)

    @property
    def reads_slowly(self):
        return bool(self.core.reads_slowly)

    @property
    def queue_family(self):
        return self.core.queue_family

    @property
    def upload_family(self):
        return self.core.upload_family

    @property
    def api_version(self):
        return self.core.api_version

    @property
    def timestamp_period(self):
        return self.core.timestamp_period

    @property
    def timestamp_bits(self):
        return self.core.timestamp_bits

    @property
    def inherited(self):
        """Whether it was opened in another process, from which this one was forked: it cannot be
        used here, and closing it releases nothing."""
        return bool(self.core.calls.inherited)

    def check_process(self):
        """Raises where no call may reach the driver.

        Raises:
            ForkedError: the device is `inherited`.
            DeviceLostError: it was given up.
        """
        cdef Error error
        check_status(check_usable(&self.core, &error), &error)

    cdef int set_host_lock(self, lock) except -1:
        cdef size_t address
        if isinstance(lock, tuple):
            if len(lock) != 3:
                raise InputError(f"lock: expected (lock, unlock, data), got {len(lock)} values")
            address = address_of(lock[0], "lock")
            self.host_functions.lock = <HostLock>address
            address = address_of(lock[1], "unlock")
            self.host_functions.unlock = <HostLock>address
            address = lock[2] or 0
            self.host_functions.data = <void*>address
            self.core.host = QueueLock(call_lock, call_unlock, &self.host_functions)
        elif lock is not None:
            if not (hasattr(type(lock), "__enter__") and hasattr(type(lock), "__exit__")):
                raise InputError("lock: expected a context manager or (lock, unlock, data), got "
                                 f"{lock!r}")
            self.host_lock = lock
            self.core.host = QueueLock(enter_lock, exit_lock, <void*>self)
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __dealloc__(self):
        close_pipeline_file(&self.pipelines)
        # Without an instance nothing was opened.
        if self.core.instance != NULL:
            with nogil:
                close_device(&self.core)

    def __repr__(self):
        name = self.info.name if self.info is not None else "?"
        return f"<vkrt.Device {name}{', closed' if self.closed else ''}>"

    def __reduce__(self):
        raise TypeError("a Device cannot be copied or sent to another process: pass its name or "
                        "number, and call vkrt.Device.open there")


cdef int call_lock(void* data, Error* error) noexcept nogil:
    cdef HostFunctions* functions = <HostFunctions*>data
    functions.lock(functions.data)
    return VKRT_OK


cdef void call_unlock(void* data) noexcept nogil:
    cdef HostFunctions* functions = <HostFunctions*>data
    functions.unlock(functions.data)


cdef int enter_lock(void* data, Error* error) noexcept with gil:
    """What it raises stays the thread's exception, which `check_status` finds."""
    cdef Device device = <Device>data
    try:
        type(device.host_lock).__enter__(device.host_lock)
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        return fail(error, VKRT_ERROR_CANCELLED, b"the host's lock cannot be taken")
    return VKRT_OK


cdef void exit_lock(void* data) noexcept with gil:
    cdef Device device = <Device>data
    try:
        type(device.host_lock).__exit__(device.host_lock, None, None, None)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()  # for whoever waits for the device
