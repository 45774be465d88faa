"""Which device features a shader needs, read from the SPIR-V itself.

A driver may kill the process when it meets a capability it does not have, so every module is
checked before the driver sees it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from vkrt.errors import UnsupportedError

MAGIC = 0x07230203
OP_CAPABILITY = 17
HEADER_WORDS = 5

# SPIR-V capability -> (name, feature of the device that allows it, or None: every device does).
CAPABILITIES: dict[int, tuple[str, str | None]] = {
    0: ("Matrix", None),
    1: ("Shader", None),
    9: ("Float16", "float16"),
    11: ("Int64", "int64"),
    22: ("Int16", "int16"),
    39: ("Int8", "int8"),
    43: ("Sampled1D", None),
    44: ("Image1D", None),
    46: ("SampledBuffer", None),
    47: ("ImageBuffer", None),
    49: ("StorageImageExtendedFormats", "storage_image_extended_formats"),
    50: ("ImageQuery", None),
    55: ("StorageImageReadWithoutFormat", "storage_image_read_without_format"),
    56: ("StorageImageWriteWithoutFormat", "storage_image_write_without_format"),
    61: ("GroupNonUniform", "subgroup_basic"),
    62: ("GroupNonUniformVote", "subgroup_vote"),
    63: ("GroupNonUniformArithmetic", "subgroup_arithmetic"),
    64: ("GroupNonUniformBallot", "subgroup_ballot"),
    65: ("GroupNonUniformShuffle", "subgroup_shuffle"),
    66: ("GroupNonUniformShuffleRelative", "subgroup_shuffle_relative"),
    67: ("GroupNonUniformClustered", "subgroup_clustered"),
    68: ("GroupNonUniformQuad", "subgroup_quad"),
    4433: ("StorageBuffer16BitAccess", "storage16"),
    4434: ("UniformAndStorageBuffer16BitAccess", "uniform16"),
    4435: ("StoragePushConstant16", "push_constant16"),
    4448: ("StorageBuffer8BitAccess", "storage8"),
    4449: ("UniformAndStorageBuffer8BitAccess", "uniform8"),
    4450: ("StoragePushConstant8", "push_constant8"),
    6016: ("DotProductInputAll", "integer_dot_product"),
    6017: ("DotProductInput4x8Bit", "integer_dot_product"),
    6018: ("DotProductInput4x8BitPacked", "integer_dot_product"),
    6019: ("DotProduct", "integer_dot_product"),
}


def declared(spirv: bytes) -> list[int]:
    """Numbers of the capabilities a module declares.

    Raises:
        ValueError: the bytes are not a SPIR-V module of this machine's byte order.
    """
    if len(spirv) < 4 * HEADER_WORDS or len(spirv) % 4:
        raise ValueError(f"{len(spirv)} bytes are not a SPIR-V module")
    words = struct.unpack(f"={len(spirv) // 4}I", spirv)
    if words[0] != MAGIC:
        raise ValueError(f"not a SPIR-V module: it starts with {words[0]:#010x}")
    found = []
    at = HEADER_WORDS
    # Capabilities come before everything else.
    while at + 1 < len(words) and words[at] & 0xFFFF == OP_CAPABILITY:
        found.append(words[at + 1])
        at += words[at] >> 16 or 1
    return found


def check_capabilities(spirv: bytes, features: Iterable[str], device: str) -> None:
    """Refuses a shader that a device with these features may not be given.

    Args:
        spirv: the module.
        features: names of the enabled features.
        device: name of the device, for the message.

    Raises:
        UnsupportedError: a capability is missing, or unknown to vkrt.
        ValueError: the bytes are not a SPIR-V module.
    """
    features = frozenset(features)
    missing = []
    for number in declared(spirv):
        if number not in CAPABILITIES:
            missing.append(f"Capability{number} (unknown to vkrt)")
            continue
        name, feature = CAPABILITIES[number]
        if feature is not None and feature not in features:
            missing.append(f"{name} (device feature {feature})")
    if missing:
        raise UnsupportedError(f"{device} cannot run the shader: it needs {', '.join(missing)}; of "
                               "an adopted device these have to be enabled, see "
                               "vkrt.required_features")
