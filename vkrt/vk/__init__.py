"""The only package besides the core that names Vulkan: loader, device, memory, pipelines.

Importing it needs no driver; opening a device does.
"""

from vkrt.vk.check import live_objects
from vkrt.vk.messages import clear_validation_messages, validation_findings, validation_messages

__all__ = ["clear_validation_messages", "live_objects", "validation_findings",
           "validation_messages"]
