from collections.abc import Iterable, Sequence
from typing import Final

from vkrt.vk.device import Device

class ShaderModule:
    def __init__(self, device: Device, spirv: bytes) -> None: ...
    def close(self) -> None: ...

class DescriptorLayout:
    def __init__(self, device: Device, types: Iterable[int],
                 push_constant_size: int = 0) -> None: ...
    types: Final[tuple[int, ...]]
    push_constant_size: Final[int]
    def close(self) -> None: ...

class Pipeline:
    def __init__(self, layout: DescriptorLayout, module: ShaderModule | None,
                 constants: Sequence[tuple[int, int]] = ()) -> None: ...
    layout: Final[DescriptorLayout]
    def close(self) -> None: ...
