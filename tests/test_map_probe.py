"""Mapped weights with drivers of which nothing is known: a probe decides. What drivers do in it,
and what is kept of it, is for tests/core/test_core_map_probe.py."""

from __future__ import annotations

import itertools
import mmap
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hostile_device import environment_of
from support import MODELS, failing, need_imports, run_python

import vkrt
from vkrt.memory.source import Source
from vkrt.runtime import mapping
from vkrt.runtime.map_probe import reads_files
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device
from vkrt.vk.imported import import_alignment
from vkrt.vk.memory import fail_allocation_after

pytestmark = pytest.mark.driver

# VkDriverIds that no driver has: a process remembers what it has tried.
UNKNOWN = itertools.count(987654)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "vkrt"


@pytest.fixture
def source():
    with closing(Source.open(MODELS / "mlp.pte")) as opened:
        yield opened


@pytest.fixture
def unknown():
    """The device at hand, its driver unknown."""
    with override_device(driver_id=next(UNKNOWN)), Device.open() as device:
        if not device.unified or import_alignment(device) > mmap.PAGESIZE:
            pytest.skip("the device does not read the host's memory")
        need_imports(device)
        yield device


def run(device, **options):
    """The outputs of a program, bytes of mapped weights, and why others are not mapped."""
    with vkrt.load(MODELS / "mlp.pte", device, **options) as program:
        inputs = [np.ones(i.sizes, i.dtype) for i in program.metadata().inputs]
        outputs = [output.tobytes() for output in program.run(*inputs)]
        return outputs, program.memory.mapped, {record.why for record in program.memory.placements}


def probe_results(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.vkrtcopied")) if folder.exists() else []


def test_a_driver_that_reads_files_is_found_out(unknown, folder, device):
    _, mapped, _ = run(device)
    # What is known of this driver also decides kernels.
    expected, _, _ = run(unknown, weights="copy")
    assert not probe_results(folder)
    assert run(unknown)[:2] == (expected, mapped)
    (kept,) = probe_results(folder)
    assert b"yes " in kept.read_bytes()


def test_a_driver_that_loses_the_device(folder, device):
    """The program runs, copied; only those who insist get what they asked for. On a device that
    imports whatever it is given, and is lost with the next submission."""
    need_imports(device)
    run_python("""
        import pytest, vkrt
        from test_map_probe import run
        from vkrt.vk.device import Device
        with Device.open() as device:
            expected, _, _ = run(device, weights="copy")
            outputs, mapped, reasons = run(device)
            assert (outputs, mapped) == (expected, 0)
            assert any("a probe did not show that this driver reads" in why for why in reasons)
            with pytest.raises(vkrt.DeviceLostError):
                run(device, weights="map")
        """, **environment_of("losing"))
    (kept,) = probe_results(folder)
    assert b"no  " in kept.read_bytes()


def test_what_could_not_be_tried_is_no_probe_result(unknown, source, folder):
    with failing(fail_allocation_after, 1):
        assert not reads_files(unknown, source)
    assert not probe_results(folder)
    assert reads_files(unknown, source)


def test_nothing_is_kept_where_nothing_is_to_be_kept(source, folder):
    with override_device(driver_id=next(UNKNOWN)), Device.open(pipeline_cache="off") as device:
        reads_files(device, source)
    assert not probe_results(folder)


def test_what_cannot_be_mapped_anyway_is_not_tried(unknown, monkeypatch):
    monkeypatch.setattr(mapping, "reads_files", lambda *_: pytest.fail("tried"))
    with vkrt.load((MODELS / "mlp.pte").read_bytes(), unknown) as program:
        assert program.memory.mapped == 0
