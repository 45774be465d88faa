"""Pipeline stages (VkPipelineStageFlagBits) and accesses (VkAccessFlagBits) of barriers."""

from __future__ import annotations

COMPUTE_STAGE = 0x800
TRANSFER_STAGE = 0x1000
HOST_STAGE = 0x4000

SHADER_READ = 0x20
SHADER_WRITE = 0x40
TRANSFER_READ = 0x800
TRANSFER_WRITE = 0x1000
HOST_READ = 0x2000
HOST_WRITE = 0x4000
