"""What is best on which driver. Rows are measured and written by `tools/tune.py --write`.

A driver that has no row (VkDriverId) gets the one named "default". The fields are those of
`vkrt.graph.policy.Policy` and `vkrt.graph.tuning.Tuning`; `measured` says on what, `why` the
figures behind a choice.
"""

from __future__ import annotations

from typing import Any

DRIVERS: dict[str, dict[str, Any]] = {
    "default": {
        "driver_id": None,
        "storage": "texel",
        "max_texels": None,
        "specialize": True,
        "tiles": {(8, 8): 20.0, (4, 8): 17.5, (4, 4): 14.0, (2, 4): 10.5, (1, 4): 8.0},
        "lanes": 4096,
        "wide_depthwise": 3,
        "least_groups": 4,
        "speed": {"multiply_adds": 2e11, "bytes": 3e10, "dispatch": 5e-06},
        "ceiling": None,
        "measured": "nothing: for GPUs, which have more lanes than the drivers below",
        "why": {},
    },
    "llvmpipe": {
        "driver_id": 13,
        "storage": "texel",
        "max_texels": None,
        "specialize": True,
        "tiles": {(8, 8): 20.0, (4, 8): 17.5, (4, 4): 14.0, (2, 4): 10.5, (1, 4): 8.0},
        "lanes": 64,
        "wide_depthwise": 3,
        "least_groups": 4,
        "speed": {"multiply_adds": 1.2e10, "bytes": 5e9, "dispatch": 1e-05},
        "ceiling": {"flops": 1.7e10, "bytes": 1.07e10, "per_core": True},
        "measured": "llvmpipe (LLVM 15.0.6, 256 bits), Mesa 22.3.6",
        "why": {"storage": "texel views read 1.4 to 4 times as fast as storage buffers"},
    },
    "swiftshader": {
        "driver_id": 10,
        "storage": "texel",
        "max_texels": 4194304,
        "specialize": True,
        "tiles": {(8, 8): 20.0, (4, 8): 17.5, (4, 4): 14.0, (2, 4): 10.5, (1, 4): 8.0},
        "lanes": 64,
        "wide_depthwise": 3,
        "least_groups": 4,
        "speed": {"multiply_adds": 3e9, "bytes": 2e9, "dispatch": 1e-05},
        "ceiling": {"flops": 4.6e9, "bytes": 2e9, "per_core": True},
        "measured": "SwiftShader",
        "why": {"max_texels": "it reports the specification's minimum of 65536 and reads larger "
                              "views right",
                "storage": "texel views read 1.5 to 2.5 times as fast as storage buffers"},
    },
}
