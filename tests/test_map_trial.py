"""Mapped weights with drivers of which nothing is known: a trial decides, its verdict is kept."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import MODELS, need_imports

import vkrt
from vkrt.runtime import map_trial
from vkrt.vk import verdict_file
from vkrt.vk.device import Device
from vkrt.vk.imported import HostImport, import_alignment
from vkrt.vk.memory import fail_allocation_after
from vkrt.vk.pretence import pretend

pytestmark = pytest.mark.driver

# A VkDriverId that no driver has
UNKNOWN = 987654


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache folder, and a process that has tried nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(map_trial, "_verdicts", {})
    return tmp_path / "caches" / "vkrt"


@pytest.fixture
def unknown():
    """The device at hand, its driver unknown."""
    with pretend(driver_id=UNKNOWN), Device.open() as device:
        if not device.unified or import_alignment(device) > mmap.PAGESIZE:
            pytest.skip("the device does not read the host's memory")
        need_imports(device)
        yield device


@pytest.fixture
def losing():
    """A device that imports whatever it is given, and is lost with the next submission."""
    with pretend(driver_id=UNKNOWN, loses_imports=True), Device.open() as device:
        need_imports(device)
        yield device


def run(device, **options):
    """The outputs of a program, bytes of mapped weights, and why others are not mapped."""
    with vkrt.load(MODELS / "mlp.pte", device, **options) as program:
        inputs = [np.ones(i.sizes, i.dtype) for i in program.metadata().inputs]
        outputs = [output.tobytes() for output in program.run(*inputs)]
        return outputs, program.memory.mapped, {record.why for record in program.memory.placements}


def verdicts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.vkrtmaps")) if folder.exists() else []


def test_a_driver_that_reads_files_is_found_out(unknown, folder, device):
    _, mapped, _ = run(device)
    # What is known of this driver also decides kernels.
    expected, _, _ = run(unknown, weights="copy")
    assert not verdicts(folder)
    assert run(unknown)[:2] == (expected, mapped)
    (kept,) = verdicts(folder)
    assert verdict_file.read(kept, verdict_file.key_of(unknown.info)) is True


def test_a_driver_that_loses_the_device(losing, folder):
    """The program runs, copied; only those who insist get what they asked for."""
    expected, _, _ = run(losing, weights="copy")
    outputs, mapped, reasons = run(losing)
    assert (outputs, mapped) == (expected, 0)
    assert any("a trial did not show that this driver reads" in why for why in reasons)
    (kept,) = verdicts(folder)
    assert verdict_file.read(kept, verdict_file.key_of(losing.info)) is False
    with pytest.raises(vkrt.DeviceLostError):
        run(losing, weights="map")


def test_a_driver_that_reads_something_else(unknown, folder, monkeypatch):
    other = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(other))

    def elsewhere(device, _, size, usage, owner):
        return HostImport(device, address, size, usage, other)

    monkeypatch.setattr(map_trial, "HostImport", elsewhere)
    assert not map_trial.reads_files(unknown)
    (kept,) = verdicts(folder)
    assert verdict_file.read(kept, verdict_file.key_of(unknown.info)) is False


def test_a_driver_that_refuses_the_import(unknown, monkeypatch):
    def refuse(*_):
        raise vkrt.VulkanError("refused on purpose", call="vkAllocateMemory")

    monkeypatch.setattr(map_trial, "HostImport", refuse)
    assert not map_trial.reads_files(unknown)


def test_a_driver_that_does_not_answer(folder):
    """What the device may still be at work on is left alone until the process ends; that does not
    crash, although the driver is only then done."""
    code = f"""
        from vkrt.runtime import map_trial
        from vkrt.vk.device import Device
        from vkrt.vk.pretence import pretend

        class Deaf:
            def __init__(self, fence):
                self.fence, self.close, self.is_deaf = fence, fence.close, True

            def wait(self, seconds):
                was_deaf, self.is_deaf = self.is_deaf, False
                return not was_deaf and self.fence.wait(seconds)

        submit = map_trial._Bench.submit

        def hang(self, source, nbytes):
            result, fence = submit(self, source, nbytes)
            return result, Deaf(fence)

        map_trial._Bench.submit = hang
        with pretend(driver_id={UNKNOWN}), Device.open() as device:
            print(map_trial.reads_files(device))
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True,
                          text=True, timeout=120, env={**os.environ})
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_a_verdict_is_not_asked_for_twice(unknown, folder, monkeypatch):
    tries = []
    monkeypatch.setattr(map_trial, "_try", lambda device: tries.append(device) or True)
    assert map_trial.reads_files(unknown) and map_trial.reads_files(unknown)
    monkeypatch.setattr(map_trial, "_verdicts", {})  # another process
    assert map_trial.reads_files(unknown)
    assert len(tries) == 1
    (kept,) = verdicts(folder)
    good = kept.read_bytes()
    for damaged in (b"", good[:-1], good + b"x", bytes([good[0] ^ 1]) + good[1:],
                    good.replace(b"yes", b"no "), good[:9] + bytes(32) + good[41:]):
        kept.write_bytes(damaged)
        monkeypatch.setattr(map_trial, "_verdicts", {})
        tries.clear()
        assert map_trial.reads_files(unknown)
        assert len(tries) == 1 and kept.read_bytes() == good
    assert [entry.name for entry in folder.iterdir()] == [kept.name]


def test_a_process_that_does_not_survive_the_trial_is_the_last_to_try(unknown, folder, monkeypatch):
    def die(device):
        raise KeyboardInterrupt

    monkeypatch.setattr(map_trial, "_try", die)
    with pytest.raises(KeyboardInterrupt):
        map_trial.reads_files(unknown)
    monkeypatch.setattr(map_trial, "_try", lambda device: pytest.fail("tried again"))
    assert not map_trial.reads_files(unknown)
    assert len(verdicts(folder)) == 1


def test_what_could_not_be_tried_is_no_verdict(unknown, folder):
    fail_allocation_after(1)
    assert not map_trial.reads_files(unknown)
    assert not verdicts(folder)
    assert map_trial.reads_files(unknown)


def test_nothing_is_kept_where_nothing_is_to_be_kept(folder):
    with pretend(driver_id=UNKNOWN), Device.open(pipeline_cache="off") as device:
        map_trial.reads_files(device)
    assert not verdicts(folder)


def test_what_cannot_be_mapped_anyway_is_not_tried(unknown, monkeypatch):
    monkeypatch.setattr(map_trial, "reads_files", lambda device: pytest.fail("tried"))
    data = (MODELS / "mlp.pte").read_bytes()
    with vkrt.load(data, unknown) as program:
        assert program.memory.mapped == 0


@pytest.mark.parametrize("change", [
    {"driver_version": 1234}, {"driver_info": "another"}, {"cache_uuid": "00" * 16},
    {"device_id": 7}, {"name": "another"}])
def test_verdicts_are_of_one_version_of_a_driver(device, change):
    assert verdict_file.key_of(device.info) == verdict_file.key_of(replace(device.info))
    assert verdict_file.key_of(device.info) != verdict_file.key_of(replace(device.info, **change))


def test_verdicts_are_of_one_kernel(device, monkeypatch):
    before = verdict_file.key_of(device.info)
    monkeypatch.setattr(verdict_file.os, "uname",
                        lambda: SimpleNamespace(sysname="Linux", release="another"))
    assert verdict_file.key_of(device.info) != before
