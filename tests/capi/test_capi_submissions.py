"""Runs of the C library on buffers of a host's device, which Python or the core carries out."""

from pathlib import Path

import pytest
from c_hosts import build, either, need_headers, needs_compiler, program_of, run
from host_device import PRINTING, VALIDATES
from support import inputs_of, write_arrays

HOSTS = Path(__file__).parent / "hosts"
pytestmark = [pytest.mark.driver, needs_compiler]


# A run of which the host has no part, and one that reads its weights while it goes
STREAMED = {"weights": "stream"}


@either
@pytest.mark.parametrize("name, options, copied", [
    ("mlp", {}, 360), ("superres_small", {}, 0), ("elementwise", {}, None),
    ("cases/attention", {}, None), ("superres_small", {"storage": "texture3d"}, None),
    ("unet_small", STREAMED, 0), ("mlp", STREAMED, 360)])
def test_every_way(name, options, copied, is_compiled, load, compiled_of, tmp_path):
    if VALIDATES and (name, options) == ("mlp", STREAMED):
        pytest.skip("a layer waits for ten seconds at each of its own bugs, see LAYER_BUGS")
    need_headers(tmp_path)
    host = build(HOSTS / "submissions.c", tmp_path / "host", "-D_GNU_SOURCE", "-lvulkan",
                 "-lpthread", "-Wno-missing-field-initializers")
    program = load(name, **options)
    inputs = inputs_of(program)
    given = write_arrays(tmp_path / "in", inputs)
    expected = write_arrays(tmp_path / "out", program.run(*inputs))
    path = program_of(compiled_of, name, is_compiled, **options)
    words = [] if is_compiled else [options.get(key, "") for key in ("weights", "storage")]
    first, *rest = run(host, path, given, expected, *words, **PRINTING).splitlines()
    in_place = int(first.split()[1])
    assert first.startswith("copied ") and (copied is None or in_place == copied), first
    # A layer that finds something prints it here.
    assert rest == ["order", "order", "cancelled", "cancelled", "memory", "many", "overlaps",
                    "refusals", "forks", "closing"]
