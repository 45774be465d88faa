"""The compute shaders of the core's tests as SPIR-V, compiled from tests/core/shaders."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "core" / "shaders"


@cache
def shader(name: str) -> bytes:
    glslc = shutil.which("glslc")
    if glslc is None:
        pytest.skip("no glslc to compile the shader with")
    return subprocess.run([glslc, "-O", "--target-env=vulkan1.1", FOLDER / f"{name}.comp",
                           "-o", "-"], check=True, capture_output=True).stdout
