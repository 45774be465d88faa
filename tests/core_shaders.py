"""The compute shaders of the core's tests as SPIR-V, compiled from tests/core/shaders."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "core" / "shaders"


def compiled(name: str) -> bytes:
    glslc = shutil.which("glslc")
    if glslc is None:
        pytest.skip("no glslc to compile the shaders with", allow_module_level=True)
    return subprocess.run([glslc, "-O", "--target-env=vulkan1.1", FOLDER / f"{name}.comp",
                           "-o", "-"], check=True, capture_output=True).stdout


LINEAR, TEXEL, TO_IMAGE, FROM_IMAGE, HALF = map(
    compiled, ("linear", "texel", "to_image", "from_image", "half"))
