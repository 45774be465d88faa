import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final

from vkrt.vk.info import DeviceInfo

def devices() -> list[DeviceInfo]: ...
def no_device() -> str: ...

class Device:
    info: Final[DeviceInfo]
    features: Final[frozenset[str]]
    unified: Final[bool]
    reads_slowly: Final[bool]
    queue_family: Final[int]
    upload_family: Final[int]
    api_version: Final[int]
    timestamp_period: Final[float]
    timestamp_bits: Final[int]
    pipeline_cache_option: Final[str]
    @property
    def closed(self) -> bool: ...
    process: Final[int]
    @property
    def inherited(self) -> bool: ...
    def check_process(self) -> None: ...
    @staticmethod
    def open(selector: int | str | DeviceInfo | None = None, *,
             pipeline_cache: str | os.PathLike[str] = "auto") -> Device: ...
    @staticmethod
    def adopt(instance: Any, physical_device: Any, device: Any, queue: Any, queue_family: int, *,
              features: Iterable[str] = (), get_instance_proc_addr: Any = None,
              lock: Any = None) -> Device: ...
    def close(self) -> None: ...
    def __enter__(self) -> Device: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
