from typing import Final

from vkrt.vk.device import Device

class Buffer:
    def __init__(self, device: Device, size: int, usage: int, external: int = 0) -> None: ...
    size: Final[int]
    def close(self) -> None: ...
