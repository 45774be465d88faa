from vkrt.memory.source import Source
from vkrt.vk.device import Device

def reads_files(device: Device, source: Source) -> bool: ...
