"""The compute shaders of the core's tests, as SPIR-V, so that no compiler is needed to run them.

`core/shaders` has them beside their GLSL, compiled with `glslc -O --target-env=vulkan1.1` and
`spirv-opt --strip-debug`.
"""

from pathlib import Path

LINEAR, TEXEL, TO_IMAGE, FROM_IMAGE, HALF = (
    Path(__file__).with_name("core").joinpath("shaders", f"{name}.spv").read_bytes()
    for name in ("linear", "texel", "to_image", "from_image", "half"))
