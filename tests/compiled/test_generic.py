"""Programs compiled for no device in particular: they run on every one."""

from contextlib import nullcontext

import numpy as np
import pytest
from hostile_device import environment_of
from support import MODELS, inputs_of, relative_l2, run_python

import vkrt
from vkrt.compiler.compiler import target_on
from vkrt.compiler.generic import NAME, GenericDevice
from vkrt.errors import UnsupportedError
from vkrt.plan.options import LoadOptions

# States, several methods, 8 and 4 bits, branches, halves, buffers beyond one view's texels
NAMES = ("mlp", "elementwise", "quantized_mlp", "quantized_pictures", "kept_attention", "branches",
         "unet_small", "coder", "mlp-fp16", "kept", "conv_mix", "superres_small")
PROFILES = ("worst", "mali", "amd", "nvidia", "adreno")

# Runs every method of a compiled program twice; prints whether memory was as planned, and hashes.
RUNS = """
    import hashlib
    import sys
    import numpy as np
    import vkrt

    for path in sys.argv[1:]:
        with vkrt.load(path) as program:
            for method in program.method_names:
                if method in program.constants:
                    continue
                inputs = [info.example() for info in program.metadata(method).inputs]
                outputs = [np.asarray(value) for _ in range(2)
                           for value in program.run(*inputs, method=method)]
                print(hashlib.sha256(b"".join(value.tobytes() for value in outputs)).hexdigest(),
                      all(np.isfinite(value).all() for value in outputs))
            memory = program.memory
            print(memory.planned_peak == memory.measured_peak)
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The compiled programs by their names."""
    folder = tmp_path_factory.mktemp("generic")
    for name in NAMES:
        vkrt.compile(MODELS / f"{name}.pte", folder / f"{name}.vkx", device=NAME)
    return {name: folder / f"{name}.vkx" for name in NAMES}


@pytest.mark.driver
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_program(name, compiled):
    """Within what another order of sums changes, and in exactly the bytes that were planned."""
    with vkrt.load(MODELS / f"{name}.pte") as program, vkrt.load(compiled[name]) as generic:
        for method in program.method_names:
            if method in program.constants:
                continue
            inputs = inputs_of(program, method)
            for _ in range(2):
                expected = program.run(*inputs, method=method)
                found = generic.run(*inputs, method=method)
                bound = 2e-3 if "fp16" in name else 1e-5
                for output, wanted in zip(found, expected, strict=True):
                    assert relative_l2(np.asarray(output), np.asarray(wanted)) <= bound
        memory = generic.memory
        assert memory.planned_peak == memory.measured_peak


@pytest.mark.driver
def test_no_driver_is_asked(tmp_path):
    """It is compiled where there is none."""
    code = """
        import sys
        import vkrt
        print(vkrt.compile(sys.argv[1], sys.argv[2], device="generic").targets)
    """
    out = tmp_path / "net.vkx"
    said = run_python(code, str(MODELS / "mlp.pte"), str(out), VKRT_VULKAN_LIBRARY="/nothing")
    assert said.strip() == "('generic',)"
    vkrt.load(out).close()


@pytest.mark.driver
@pytest.mark.parametrize("profile", PROFILES)
def test_it_runs_on_every_device(profile, compiled):
    """The same bits, whatever the device says of its memory, alignments and limits."""
    paths = list(map(str, compiled.values()))
    here = run_python(RUNS, *paths)
    assert "False" not in here
    assert run_python(RUNS, *paths, **environment_of(profile)) == here


@pytest.mark.parametrize("storage, fits", [("texel", True), ("buffer", True), ("texture3d", False)])
def test_images_need_a_driver(storage, fits, tmp_path):
    out = tmp_path / "net.vkx"
    with nullcontext() if fits else pytest.raises(
            UnsupportedError, match="target generic: what an image takes differs"):
        vkrt.compile(MODELS / "mlp.pte", out, device=NAME, storage=storage)
    assert out.exists() == fits


def test_its_limits_are_those_that_every_device_has():
    """No kernel may count on a feature, or on more than 128 invocations, or on subgroups."""
    target = target_on(GenericDevice(), LoadOptions())
    assert target.features == frozenset() and target.max_invocations == 128
    assert target.max_shared == 16384 and target.offset_alignment == 256
