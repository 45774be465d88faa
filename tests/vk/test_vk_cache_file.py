"""The file of compiled pipelines: what fits is read, whatever else is as if it were not there."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest

from vkrt.errors import InputError
from vkrt.vk import cache_data, cache_file, private_file
from vkrt.vk.cache_file import Identity

UUID = bytes(range(16))
CARD = Identity(vendor_id=0x1234, device_id=7, driver_version=99, uuid=UUID)


MAX_BYTES = 64 << 20


def file_of(identity, data):
    """A file with the header that vkrt writes."""
    return struct.pack("<8sIIII16sQ32s", b"vkrtpipe", 1, identity.vendor_id, identity.device_id,
                       identity.driver_version, identity.uuid, len(data),
                       hashlib.sha256(data).digest()) + data


def data_of(identity, payload=b"compiled" * 100):
    """A driver's data: the header of the Vulkan specification, then anything."""
    return struct.pack("<IIII16s", 32, 1, identity.vendor_id, identity.device_id,
                       identity.uuid) + payload


def test_round_trip(tmp_path):
    path = tmp_path / "a" / "b"
    assert cache_data.read(path, CARD) == b""
    assert cache_file.write(path, CARD, data_of(CARD))
    assert cache_data.read(path, CARD) == data_of(CARD)
    assert path.read_bytes() == file_of(CARD, data_of(CARD))
    assert cache_file.write(path, CARD, data_of(CARD, b"newer"))
    assert cache_data.read(path, CARD) == data_of(CARD, b"newer")
    assert [entry.name for entry in path.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("change", [
    dict(vendor_id=1), dict(device_id=1), dict(driver_version=1), dict(uuid=bytes(16))])
def test_of_another_device_or_driver(tmp_path, change):
    path = tmp_path / "file"
    assert cache_file.write(path, CARD, data_of(CARD))
    assert cache_data.read(path, replace(CARD, **change)) == b""


def test_every_byte_counts(tmp_path):
    path = tmp_path / "file"
    cache_file.write(path, CARD, data_of(CARD, b"four"))
    good = path.read_bytes()
    for index in range(len(good)):
        path.write_bytes(good[:index] + bytes([good[index] ^ 1]) + good[index + 1:])
        assert cache_data.read(path, CARD) == b"", f"byte {index}"
        path.write_bytes(good[:index])
        assert cache_data.read(path, CARD) == b"", f"the first {index} bytes"
    path.write_bytes(good + b"x")
    assert cache_data.read(path, CARD) == b""


@pytest.mark.parametrize("data", [
    b"", b"short", data_of(replace(CARD, device_id=8)),
    struct.pack("<IIII16s", 33, 1, 0x1234, 7, UUID),  # longer than it is
    struct.pack("<IIII16s", 32, 2, 0x1234, 7, UUID),  # of a version nobody knows
    struct.pack("<IIII16s", 16, 1, 0x1234, 7, UUID)])
def test_data_without_the_header_of_vulkan(tmp_path, data):
    """A checksum that fits is not enough: the driver is given only what it can have written."""
    path = tmp_path / "file"
    assert not cache_file.write(path, CARD, data)
    path.write_bytes(file_of(CARD, data))
    assert cache_data.read(path, CARD) == b""


def test_too_large(tmp_path):
    path = tmp_path / "file"
    most = data_of(CARD, bytes(MAX_BYTES - 32))
    assert cache_file.write(path, CARD, most)
    assert cache_data.read(path, CARD) == most
    assert not cache_file.write(path, CARD, most + b"x")
    path.write_bytes(file_of(CARD, most + b"x"))
    assert cache_data.read(path, CARD) == b""


@pytest.mark.parametrize("size", [0, 1, 23, 24, 31, 32, 33, 95, 96, 1000, 100_003])
def test_checksums(tmp_path, size):
    """Those of vkrt's own sha256, for every way in which its last block is filled."""
    path = tmp_path / "file"
    for more in range(64 if size == 1000 else 1):
        data = data_of(CARD, bytes(i % 251 for i in range(size + more)))
        assert cache_file.write(path, CARD, data)
        assert path.read_bytes() == file_of(CARD, data)


def test_where_it_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = cache_file.path_of("auto", CARD)
    assert os.path.dirname(path) == str(tmp_path / "vkrt")
    assert UUID.hex() in os.path.basename(path)
    assert cache_file.path_of("auto", replace(CARD, driver_version=1)) != path
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, the specification says
    monkeypatch.setenv("HOME", str(tmp_path))
    assert os.path.dirname(cache_file.path_of("auto", CARD)) == str(tmp_path / ".cache" / "vkrt")
    assert cache_file.path_of("off", CARD) is None
    assert cache_file.path_of("/some/where", CARD) == "/some/where"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # nobody's home
    assert cache_file.path_of("auto", CARD) is None


def test_option(monkeypatch, tmp_path):
    monkeypatch.delenv("VKRT_PIPELINE_CACHE", raising=False)
    assert cache_file.check_option("auto") == "auto"
    assert cache_file.check_option(tmp_path / "file") == str(tmp_path / "file")
    for wrong in (None, "", ".", "/"):
        with pytest.raises(InputError, match="'auto', 'off' or a path"):
            cache_file.check_option(wrong)
    monkeypatch.setenv("VKRT_PIPELINE_CACHE", "off")
    assert cache_file.check_option("auto") == "off"
    assert cache_file.check_option("/a") == "/a"


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
    assert not cache_data.has_pipelines(data_of(CARD, b""))
    assert cache_data.has_pipelines(data_of(CARD))


# Writes one of two caches after the other, and says when the first is there.
WRITER = """
    import sys
    from vkrt.vk import cache_file
    card = cache_file.Identity(0x1234, 7, 99, bytes(range(16)))
    one, other = (bytes.fromhex(sys.argv[2]) + byte * (1 << 20) for byte in (b"a", b"b"))
    while True:
        assert cache_file.write(sys.argv[1], card, one)
        print("written", flush=True)
        one, other = other, one
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_is_killed_leaves_a_whole_file(seed, tmp_path):
    path = tmp_path / "cache.vkpipelines"
    header = data_of(CARD, b"")
    for pause in np.random.default_rng(seed).uniform(0, 0.02, 3):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), path,
                                  header.hex()], stdout=subprocess.PIPE)
        assert child.stdout.readline()
        time.sleep(pause)
        child.kill()
        child.communicate()
        assert cache_data.read(path, CARD) in [header + byte * (1 << 20) for byte in (b"a", b"b")]
    # What they had not finished goes with the next write.
    assert cache_file.write(path, CARD, header + b"c")
    assert cache_data.read(path, CARD) == header + b"c"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
