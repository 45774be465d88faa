"""The file of compiled pipelines: what fits is read, whatever else is as if it were not there."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import subprocess
import sys
import textwrap
import time
from ctypes import byref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from core_alone import ROOM, Error, core
from core_build import needs_build
from core_cache import Owner, data_of, read_cache, write_cache

from vkrt.errors import InputError
from vkrt.vk import private_file
from vkrt.vk.cache_folder import cache_folder, check_option

pytestmark = needs_build

UUID = bytes(range(16))
CARD = Owner(vendor=0x1234, device=7, driver_version=99, uuid=UUID)
MAX_BYTES = 64 << 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def file_of(owner, data):
    """A file with the header that vkrt writes."""
    return struct.pack("<8sIIII16sQ32s", b"vkrtpipe", 1, owner.vendor, owner.device,
                       owner.driver_version, owner.uuid, len(data),
                       hashlib.sha256(data).digest()) + data


def test_round_trip(tmp_path):
    path = tmp_path / "a" / "b"
    assert read_cache(path, CARD) == b""
    assert write_cache(path, CARD, data_of(CARD))
    assert read_cache(path, CARD) == data_of(CARD)
    assert path.read_bytes() == file_of(CARD, data_of(CARD))
    assert write_cache(path, CARD, data_of(CARD, b"newer"))
    assert read_cache(path, CARD) == data_of(CARD, b"newer")
    assert [entry.name for entry in path.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("change", [
    dict(vendor=1), dict(device=1), dict(driver_version=1), dict(uuid=bytes(16))])
def test_of_another_device_or_driver(path, change):
    assert write_cache(path, CARD, data_of(CARD))
    assert read_cache(path, replace(CARD, **change)) == b""


def test_every_byte_counts(path):
    write_cache(path, CARD, data_of(CARD, b"four"))
    good = path.read_bytes()
    for index in range(len(good)):
        path.write_bytes(good[:index] + bytes([good[index] ^ 1]) + good[index + 1:])
        assert read_cache(path, CARD) == b"", f"byte {index}"
        path.write_bytes(good[:index])
        assert read_cache(path, CARD) == b"", f"the first {index} bytes"
    path.write_bytes(good + b"x")
    assert read_cache(path, CARD) == b""


@pytest.mark.parametrize("data", [
    b"", b"short", data_of(replace(CARD, device=8)),
    struct.pack("<IIII16s", 33, 1, 0x1234, 7, UUID),  # longer than it is
    struct.pack("<IIII16s", 32, 2, 0x1234, 7, UUID),  # of a version nobody knows
    struct.pack("<IIII16s", 16, 1, 0x1234, 7, UUID)])
def test_data_without_the_header_of_vulkan(path, data):
    """A checksum that fits is not enough: the driver is given only what it can have written."""
    assert not write_cache(path, CARD, data)
    path.write_bytes(file_of(CARD, data))
    assert read_cache(path, CARD) == b""


def test_too_large(path):
    most = data_of(CARD, bytes(MAX_BYTES - 32))
    assert write_cache(path, CARD, most)
    assert read_cache(path, CARD) == most
    assert not write_cache(path, CARD, most + b"x")
    path.write_bytes(file_of(CARD, most + b"x"))
    assert read_cache(path, CARD) == b""


@pytest.mark.parametrize("size", [0, 1, 23, 24, 31, 32, 33, 95, 96, 1000, 100_003])
def test_checksums(path, size):
    """Those of vkrt's own sha256, for every way in which its last block is filled."""
    for more in range(64 if size == 1000 else 1):
        data = data_of(CARD, bytes(i % 251 for i in range(size + more)))
        assert write_cache(path, CARD, data)
        assert path.read_bytes() == file_of(CARD, data)


def pipeline_file(option: str, owner: Owner) -> str | None:
    """The path of a device's file; None for none."""
    file, error = PipelineFile(), Error()
    device = ctypes.create_string_buffer(ROOM)
    device.raw = b"\x01" * ROOM  # as one that was inherited: it makes no VkPipelineCache
    assert core().vkrt_open_pipeline_file(device, owner.as_core(), option.encode(), b"1.2.3",
                                          byref(file), byref(error)) == 0
    path = file.path
    core().vkrt_close_pipeline_file(byref(file))
    return None if path is None else os.fsdecode(path)


class PipelineFile(ctypes.Structure):
    """The start of the core's struct of this name."""

    _fields_ = [("path", ctypes.c_char_p), ("more", ctypes.c_char * 200)]


def test_where_it_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("VKRT_PIPELINE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = pipeline_file("auto", CARD)
    assert os.path.dirname(path) == str(tmp_path / "vkrt") == cache_folder()
    assert UUID.hex() in os.path.basename(path) and "1.2.3" in path
    assert pipeline_file("auto", replace(CARD, driver_version=1)) != path
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, the specification says
    monkeypatch.setenv("HOME", str(tmp_path))
    assert os.path.dirname(pipeline_file("auto", CARD)) == str(tmp_path / ".cache" / "vkrt")
    assert pipeline_file("off", CARD) is None
    assert pipeline_file("/some/where", CARD) == "/some/where"
    monkeypatch.delenv("HOME")  # nobody's home
    assert pipeline_file("auto", CARD) is None and cache_folder() is None


def test_option(monkeypatch, tmp_path):
    monkeypatch.delenv("VKRT_PIPELINE_CACHE", raising=False)
    assert check_option("auto") == "auto"
    assert check_option(tmp_path / "file") == str(tmp_path / "file")
    for wrong in (None, "", ".", "/", "a\0b"):
        with pytest.raises(InputError, match="'auto', 'off' or a path"):
            check_option(wrong)
    os.mkfifo(tmp_path / "pipe")  # which would keep whoever opens it waiting
    with pytest.raises(InputError, match="not a pipeline cache"):
        check_option(tmp_path / "pipe")
    monkeypatch.setenv("VKRT_PIPELINE_CACHE", "off")
    assert check_option("auto") == "off"
    assert check_option("/a") == "/a"


def test_old_files_go(tmp_path):
    """The folder is bounded: what was written longest ago is removed, never the newest."""
    names = ["c", "a", "b"]
    for age, name in enumerate(names):
        path = tmp_path / f"{name}.vkpipelines"
        path.write_bytes(bytes(1000))
        os.utime(path, (1000 + age, 1000 + age))
    (tmp_path / "other").write_bytes(bytes(5000))
    private_file.prune(tmp_path, tmp_path / "b.vkpipelines", ".vkpipelines", max_bytes=2000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.vkpipelines", "b.vkpipelines", "other"]
    private_file.prune(tmp_path, tmp_path / "b.vkpipelines", ".vkpipelines", max_bytes=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.vkpipelines", "other"]
    nowhere = tmp_path / "nowhere"
    private_file.prune(nowhere, nowhere / "x", ".vkpipelines", max_bytes=0)


def test_nothing_to_save():
    assert not core().vkrt_has_pipelines(ctypes.c_size_t(len(data_of(CARD, b""))))
    assert core().vkrt_has_pipelines(ctypes.c_size_t(len(data_of(CARD))))


def test_one_that_others_may_write_is_not_read(path):
    assert write_cache(path, CARD, data_of(CARD))
    path.chmod(0o666)
    assert read_cache(path, CARD) == b""


# Writes one of two caches after the other, and says when the first is there.
WRITER = """
    import sys
    from core_cache import Owner, write_cache
    card = Owner(0x1234, 7, 99, bytes(range(16)))
    one, other = (bytes.fromhex(sys.argv[2]) + byte * (1 << 20) for byte in (b"a", b"b"))
    while True:
        assert write_cache(sys.argv[1], card, one)
        print("written", flush=True)
        one, other = other, one
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_is_killed_leaves_a_whole_file(seed, tmp_path):
    path = tmp_path / "cache.vkpipelines"
    header = data_of(CARD, b"")
    for pause in np.random.default_rng(seed).uniform(0, 0.02, 3):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), path,
                                  header.hex()], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])})
        assert child.stdout.readline()
        time.sleep(pause)
        child.kill()
        child.communicate()
        assert read_cache(path, CARD) in [header + byte * (1 << 20) for byte in (b"a", b"b")]
    # What they had not finished goes with the next write.
    assert write_cache(path, CARD, header + b"c")
    assert read_cache(path, CARD) == header + b"c"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
