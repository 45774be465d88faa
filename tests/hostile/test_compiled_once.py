"""The cache of pipelines: a second process compiles nothing, and another device's file is none."""

import re

from hostile_device import environment_of
from support import MODELS, run_python


def pipelines_of(name, folder, profile):
    """How many pipelines a process that loads a program compiles, and how many the cache has. With
    weights that are copied no import is tried, on a device of its own."""
    printed = run_python("""
        import os, sys
        os.dup2(1, 2)  # where the layer says it
        import vkrt
        with vkrt.load(sys.argv[1], weights="copy") as program:
            pass
        """, str(MODELS / f"{name}.pte"), **environment_of(profile), XDG_CACHE_HOME=str(folder),
        VKRT_HOSTILE_COUNTS="1")
    said = re.fullmatch(r"compiled (\d+), from the cache (\d+)\n", printed)
    return tuple(map(int, said.groups()))


# Not marked `driver`: it is the layer that has the cache.
def test_second_load_compiles_nothing(tmp_path):
    compiled, found = pipelines_of("conv_mix", tmp_path, "mali")
    assert compiled > 3
    assert found == 0
    assert pipelines_of("conv_mix", tmp_path, "mali") == (0, compiled)
    # What another program has in common with it is there, and no more.
    more, common = pipelines_of("unet_small", tmp_path, "mali")
    assert more > 0
    assert common > 0
    assert pipelines_of("unet_small", tmp_path, "mali") == (0, more + common)


def test_cache_of_another_device(tmp_path):
    """The driver's version is the same, and so is the name of the file."""
    first = pipelines_of("mlp", tmp_path, "mali")
    assert first[0] > 0
    for profile in ("adreno", "mali"):
        assert pipelines_of("mlp", tmp_path, profile) == first
