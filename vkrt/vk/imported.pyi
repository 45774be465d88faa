from types import TracebackType
from typing import Any, Final

from vkrt.vk.device import Device
from vkrt.vk.resource import Buffer

def import_alignment(device: Device) -> int: ...


class HostImport:
    def __init__(self, device: Device, address: int, size: int, usage: int,
                 owner: Any = None) -> None: ...
    buffer: Final[Buffer]
    size: Final[int]
    def close(self) -> None: ...
    def __enter__(self) -> HostImport: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
