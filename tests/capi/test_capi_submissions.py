"""Runs of the C library on buffers of a host's device, whether Python or the core carries them out.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_hosts import CC, build, needs_compiler, run
from compiled_programs import inputs_of
from host_device import PRINTING, VALIDATES
from support import MODELS

import vkrt

HOSTS = Path(__file__).parent / "hosts"
pytestmark = [pytest.mark.driver, needs_compiler]
either = pytest.mark.parametrize("is_compiled", [False, True], ids=["pte", "vkx"])


def need_headers(tmp_path):
    probe = tmp_path / "probe.c"
    probe.write_text("#include <vulkan/vulkan.h>\nint main(void) { return 0; }\n")
    if subprocess.run([CC, str(probe), "-o", str(tmp_path / "probe"), "-lvulkan"],
                      capture_output=True).returncode:
        pytest.skip("no headers of Vulkan")


def prepare(tmp_path, name, is_compiled, **options):
    """A program, and files with its inputs and outputs."""
    path = MODELS / f"{name}.pte"
    with vkrt.load(path, **options) as program:
        inputs = inputs_of(program)
        outputs = program.run(*inputs)
    for file, arrays in (("in", inputs), ("out", outputs)):
        (tmp_path / file).write_bytes(b"".join(np.asarray(x).tobytes() for x in arrays))
    if is_compiled:
        # The host has not enabled what weights in their file need.
        vkrt.compile(path, tmp_path / f"{Path(name).name}.vkx", **{"weights": "copy", **options})
        path = tmp_path / f"{Path(name).name}.vkx"
    return path, tmp_path / "in", tmp_path / "out"


# A run of which the host has no part, and one that reads its weights while it goes
STREAMED = {"weights": "stream"}


@either
@pytest.mark.parametrize("name, options, copied", [
    ("mlp", {}, 360), ("superres_small", {}, 0), ("elementwise", {}, None),
    ("cases/attention", {}, None), ("superres_small", {"storage": "texture3d"}, None),
    ("unet_small", STREAMED, 0), ("mlp", STREAMED, 360)])
def test_every_way(name, options, copied, is_compiled, tmp_path):
    if VALIDATES and (name, options) == ("mlp", STREAMED):
        pytest.skip("a layer waits for ten seconds at each of its own bugs, see LAYER_BUGS")
    need_headers(tmp_path)
    host = build(HOSTS / "submissions.c", tmp_path / "host", "-D_GNU_SOURCE", "-lvulkan",
                 "-lpthread", "-Wno-missing-field-initializers")
    words = prepare(tmp_path, name, is_compiled, **options)
    if not is_compiled:
        words += tuple(options.get(key, "") for key in ("weights", "storage"))
    first, *rest = run(host, *words, **PRINTING).splitlines()
    in_place = int(first.split()[1])
    assert first.startswith("copied ") and (copied is None or in_place == copied), first
    # A layer that finds something prints it here.
    assert rest == ["order", "order", "cancelled", "cancelled", "memory", "many", "overlaps",
                    "refusals", "forks", "closing"]
