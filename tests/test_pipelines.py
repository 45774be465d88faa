"""Pipelines are shared by the programs on a device, made by threads, and kept in a file."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support import MODELS
from vkrt.vk.pipeline_cache import save

import vkrt
from vkrt.vk import live_objects

pytestmark = pytest.mark.driver
MLP = MODELS / "mlp.pte"


def pipelines():
    return live_objects()["pipeline"]


def reference():
    with np.load(MODELS / "mlp.npz") as archive:
        return archive["in0"], archive["out0"]


def test_programs_share_pipelines(device):
    x, y = reference()
    none = pipelines()
    one = vkrt.load(MLP, device)
    first = pipelines()
    assert first > none
    two = vkrt.load(MLP, device)
    assert pipelines() == first
    one.close()
    assert pipelines() == first
    np.testing.assert_allclose(two.run(x)[0], y, rtol=1e-4, atol=1e-5)
    two.close()
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


def test_shaders_of_many_sizes_have_them_pushed(device, monkeypatch):
    """They are fewer pipelines then, and give the same results."""
    none, x = pipelines(), np.load(MODELS / "conv_mix.npz")["in0"]
    with vkrt.load(MODELS / "conv_mix.pte", device) as program:
        specialized = pipelines() - none
        expected = program.run(x)
    monkeypatch.setattr("vkrt.runtime.pipelines.MAX_SPECIALIZED", 0)
    with vkrt.load(MODELS / "conv_mix.pte", device) as program:
        assert pipelines() - none < specialized
        for result, wanted in zip(program.run(x), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_a_storage_has_pipelines_of_its_own(device):
    x, y = reference()
    with vkrt.load(MLP, device) as one, vkrt.load(MLP, device, storage="buffer") as two:
        np.testing.assert_allclose(one.run(x)[0], y, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(one.run(x)[0], two.run(x)[0])


def test_devices_do_not_share():
    x, _ = reference()
    none = pipelines()
    with vkrt.load(MLP) as one:
        alone = pipelines() - none
        with vkrt.load(MLP) as two:
            assert pipelines() - none == 2 * alone
            np.testing.assert_array_equal(one.run(x)[0], two.run(x)[0])


def test_loading_in_many_threads(device):
    """Programs that are loaded at the same time agree on their pipelines."""
    x, _ = reference()
    none = pipelines()
    with vkrt.load(MLP, device) as program:
        alone = pipelines() - none
        expected, = program.run(x)
    results, failures = [], []

    def load():
        try:
            results.append(vkrt.load(MLP, device))
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    try:
        assert pipelines() - none == alone
        for program in results:
            np.testing.assert_array_equal(program.run(x)[0], expected)
    finally:
        for program in results:
            program.close()
    assert pipelines() == none


def test_a_failed_load_leaves_no_pipelines(device):
    """Also when it fails while they are being made."""
    none = live_objects()
    with pytest.raises(vkrt.InputError, match="budget"):
        vkrt.load(MODELS / "conv_mix.pte", device, weights="stream", memory_budget=100)
    assert live_objects() == none


def test_a_program_that_nobody_closed(device):
    none = pipelines()
    program = vkrt.load(MLP, device)
    assert pipelines() > none
    del program
    assert pipelines() == none


def load_once(path):
    """Loads and runs on a device with this cache file; the file's bytes then."""
    x, y = reference()
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


@pytest.mark.parametrize("damage", ["length", "flip", "empty", "header", "other driver"])
def test_damaged_cache_file(tmp_path, damage):
    """It is ignored and written anew."""
    path = tmp_path / "pipelines"
    good = load_once(path)
    bad = bytearray(good)
    if damage == "length":
        del bad[-3:]
    elif damage == "flip":
        bad[-1] ^= 0xFF
    elif damage == "empty":
        bad.clear()
    elif damage == "header":
        bad[0] ^= 0xFF
    else:
        bad[20] ^= 0xFF
    path.write_bytes(bad)
    assert load_once(path) != bytes(bad)


def test_cache_that_cannot_be_written(tmp_path):
    """Not a reason to fail."""
    (tmp_path / "file").write_bytes(b"")
    x, y = reference()
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
