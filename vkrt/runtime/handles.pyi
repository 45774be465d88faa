from collections.abc import Callable

from vkrt.vk.device import Device
from vkrt.work.tensor import Storage

class Handles:
    def address_of(self, storage: int) -> int: ...

def requirements_of(device: Device) -> Callable[[Storage], tuple[int, int, int]]: ...
