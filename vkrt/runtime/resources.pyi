from collections.abc import Callable

from vkrt.vk.device import Device
from vkrt.work.tensor import Storage

def requirements_of(device: Device) -> Callable[[Storage], tuple[int, int, int]]: ...
