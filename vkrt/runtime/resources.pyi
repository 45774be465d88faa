from collections.abc import Callable

from vkrt.graph.tensor import Storage
from vkrt.vk.device import Device

def requirements_of(device: Device) -> Callable[[Storage], tuple[int, int, int]]: ...
