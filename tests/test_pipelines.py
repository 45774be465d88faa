"""Pipelines are shared by the programs on a device, made by threads, and kept in a file."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from support import MODELS, damaged, in_threads, mlp_arrays, reference_of, same_bits

import vkrt
from vkrt.device.policy import overridden, policy_of
from vkrt.vk import live_objects
from vkrt.vk.pipeline_cache import save

pytestmark = pytest.mark.driver
MLP = MODELS / "mlp.pte"


def pipelines():
    return live_objects()["pipeline"]


def test_programs_share_pipelines(device):
    x, y = mlp_arrays()
    none = pipelines()
    with vkrt.load(MLP, device) as one:
        first = pipelines()
        assert first > none
        with vkrt.load(MLP, device) as two:
            assert pipelines() == first
            one.close()
            assert pipelines() == first
            np.testing.assert_allclose(two.run(x)[0], y, rtol=1e-4, atol=1e-5)
    assert pipelines() == none


def test_only_what_is_new_is_created(device):
    """Programs that have some pipelines in common (here what packs weights) add the rest."""
    none = pipelines()
    with vkrt.load(MODELS / "conv_mix.pte", device, weights="copy"):
        alone = pipelines() - none
    with vkrt.load(MODELS / "toy.pte", device, weights="copy"):
        before = pipelines() - none
        with vkrt.load(MODELS / "conv_mix.pte", device, weights="copy"):
            assert before < pipelines() - none < before + alone
        assert pipelines() - none == before
    assert pipelines() == none


def count_and_results(device, **options) -> tuple[int, list[np.ndarray]]:
    """How many pipelines a program of convolutions needs, and its results."""
    none, (inputs, _) = pipelines(), reference_of("conv_mix")
    with vkrt.load(MODELS / "conv_mix.pte", device, **options) as program:
        return pipelines() - none, program.run(*inputs)


@pytest.mark.parametrize("specialize", ["few", "none"])
def test_layers_that_differ_in_sizes_share_pipelines(device, specialize):
    """They are fewer pipelines then, and give the same results."""
    specialized, expected = count_and_results(device, specialize="all")
    shared, results = count_and_results(device, specialize=specialize)
    assert shared < specialized
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_shaders_of_many_sizes_have_them_pushed(device, monkeypatch):
    """Also where all sizes are to be compiled in."""
    specialized, _ = count_and_results(device, specialize="all")
    monkeypatch.setattr("vkrt.plan.kernels.MAX_SPECIALIZED", 0)
    assert count_and_results(device, specialize="all")[0] < specialized


def test_the_row_says_what_is_compiled_in(device):
    """By the names of families, whatever their tiles are."""
    own = replace(policy_of(device.info), specialize={})
    pushed, _ = count_and_results(device, specialize="none")
    with overridden(own):
        assert count_and_results(device)[0] == pushed
    with overridden(replace(own, specialize={"conv2d": ["kernel_y", "no such"], "no such": ["X"]})):
        assert count_and_results(device)[0] > pushed
        assert count_and_results(device, specialize="none")[0] == pushed


@pytest.mark.parametrize("name", ["mlp", "conv_mix"])
def test_avoid_recompile_padding(device, name):
    """Larger buffers and views are planned for, and no kernel sees the difference."""
    (inputs, _), planned, found = reference_of(name), [], []
    for odd in (False, True):
        with (overridden(replace(policy_of(device.info), avoid_recompile_padding=odd)),
              vkrt.load(MODELS / f"{name}.pte", device) as program):
            found.append(program.run(*inputs))
            assert program.memory.planned_peak == program.memory.measured_peak
            planned.append(program.memory.planned_peak)
    assert planned[0] < planned[1] < planned[0] + 64 * 1024
    same_bits(*found)


def test_a_storage_has_pipelines_of_its_own(load):
    x, y = mlp_arrays()
    one = load(MLP)
    two = load(MLP, storage="buffer")
    np.testing.assert_allclose(one.run(x)[0], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(one.run(x)[0], two.run(x)[0])


def test_devices_do_not_share():
    x, _ = mlp_arrays()
    none = pipelines()
    with vkrt.load(MLP) as one:
        alone = pipelines() - none
        with vkrt.load(MLP) as two:
            assert pipelines() - none == 2 * alone
            np.testing.assert_array_equal(one.run(x)[0], two.run(x)[0])


def test_loading_in_many_threads(device):
    """Programs that are loaded at the same time agree on their pipelines."""
    x, _ = mlp_arrays()
    none = pipelines()
    with vkrt.load(MLP, device) as program:
        alone = pipelines() - none
        expected, = program.run(x)
    with ExitStack() as programs:
        loaded = []
        in_threads(*[lambda: loaded.append(programs.enter_context(vkrt.load(MLP, device)))] * 4)
        assert pipelines() - none == alone
        for program in loaded:
            np.testing.assert_array_equal(program.run(x)[0], expected)
    assert pipelines() == none


def test_programs_that_load_at_once_make_one_cache(tmp_path):
    """All of them read the file without the GIL, and one makes the device's VkPipelineCache."""
    none = live_objects()
    with vkrt.Device.open(pipeline_cache=tmp_path / "pipelines") as own:
        programs = []
        in_threads(*[lambda: programs.append(vkrt.load(MLP, own))] * 3)
        caches = live_objects()["pipeline_cache"] - none["pipeline_cache"]
        for program in programs:
            program.close()
    assert (len(programs), caches) == (3, 1)
    assert live_objects() == none


def test_a_failed_load_leaves_no_pipelines(device):
    """Also when it fails while they are being made."""
    none = live_objects()
    with pytest.raises(vkrt.InputError, match="budget"):
        vkrt.load(MODELS / "conv_mix.pte", device, weights="stream", memory_budget=100)
    assert live_objects() == none


@pytest.mark.usefixtures("any_age")
def test_a_program_that_nobody_closed(device, tmp_path):
    """Planned, and by its cached plan."""
    none = pipelines()
    for _ in range(2):
        program = vkrt.load(MLP, device, plan_cache=tmp_path)
        assert pipelines() > none
        del program
        assert pipelines() == none
    assert list(tmp_path.iterdir())


def load_once(path):
    """Loads and runs on a device with this cache file; the file's bytes then."""
    x, y = mlp_arrays()
    with vkrt.load(MLP, pipeline_cache=path) as program:
        np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)
    return path.read_bytes()


def test_cache_file(tmp_path):
    """It is written, found good, and left alone."""
    path = tmp_path / "folder" / "pipelines"
    load_once(path)
    written = path.stat()
    load_once(path)
    after = path.stat()
    if after.st_ino != written.st_ino:  # a driver that adds something to what it was given
        assert after.st_size >= written.st_size
    assert [entry.name for entry in path.parent.iterdir()] == ["pipelines"]


@pytest.mark.parametrize("damage", ["length", "flip", "empty", "20"])
def test_damaged_cache_file(tmp_path, damage):
    """It is ignored and written anew; byte 20 tells the driver."""
    path = tmp_path / "pipelines"
    bad = damaged(load_once(path), damage)
    path.write_bytes(bad)
    assert load_once(path) != bad


def test_a_file_that_is_no_cache(tmp_path):
    """It is not written over, and a load says so at once."""
    path = tmp_path / "keep.jpg"
    path.write_bytes(b"a photo")
    for load in (lambda: vkrt.load(MLP, pipeline_cache=path),
                 lambda: vkrt.Device.open(pipeline_cache=path)):
        with pytest.raises(vkrt.InputError, match="keep.jpg.*not a pipeline cache.*remove"):
            load().close()
    assert path.read_bytes() == b"a photo"
    path.unlink()
    with vkrt.Device.open(pipeline_cache=path) as device:
        path.write_bytes(b"a photo")  # which comes later
        with vkrt.load(MLP, device=device):
            assert not save(device)
    assert path.read_bytes() == b"a photo"


def test_cache_that_cannot_be_written(tmp_path):
    """Not a reason to fail."""
    (tmp_path / "file").write_bytes(b"")
    x, y = mlp_arrays()
    with vkrt.load(MLP, pipeline_cache=tmp_path / "file" / "below") as program:
        np.testing.assert_allclose(program.run(x)[0], y, rtol=1e-4, atol=1e-5)


def test_cache_off(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with vkrt.load(MLP, pipeline_cache="off") as program:
        assert program.device.pipeline_cache_option == "off"
        assert not save(program.device)
    assert not (tmp_path / "vkrt").exists()  # Khronos validation has a file of its own there


def test_cache_of_the_environment(tmp_path, monkeypatch):
    target = tmp_path / "here"
    monkeypatch.setenv("VKRT_PIPELINE_CACHE", str(target))
    with vkrt.load(MLP):
        assert target.exists()
    monkeypatch.setenv("VKRT_PIPELINE_CACHE", "off")
    with vkrt.Device.open() as device:
        assert device.pipeline_cache_option == "off"
    with pytest.raises(vkrt.InputError, match="pipeline_cache=3"):
        vkrt.load(MLP, pipeline_cache=3)
