"""Source: views, the cache, and a file that changes under it."""

import mmap
import os
import time

import pytest
from memory_samples import make_cold

from vkrt.errors import FormatError
from vkrt.memory.source import MIN_AHEAD, Source, ahead_step_of

PAGE = mmap.PAGESIZE


def test_views_keep_the_file(path, data):
    source = Source.open(path)
    assert source.is_file and source.nbytes == len(data) and source.name == str(path)
    assert (source.mtime_ns, source.inode) == (path.stat().st_mtime_ns, path.stat().st_ino)
    files = len(os.listdir("/proc/self/fd"))
    view = memoryview(source)
    source.close()
    source.close()
    assert view == data.tobytes()
    assert len(os.listdir("/proc/self/fd")) == files
    view.release()
    assert len(os.listdir("/proc/self/fd")) == files - 1
    with pytest.raises(ValueError, match="is closed"):
        memoryview(source)


def test_dropped_without_close(path):
    files = len(os.listdir("/proc/self/fd"))
    source = Source.open(path)
    assert len(os.listdir("/proc/self/fd")) == files + 1
    del source
    assert len(os.listdir("/proc/self/fd")) == files


def test_files_that_cannot_be_mapped(tmp_path):
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        Source.open(tmp_path / "none")
    with pytest.raises(OSError):
        Source.open(tmp_path)  # a folder
    assert len(os.listdir("/proc/self/fd")) == files


def test_wrapped_bytes(data):
    buffer = bytearray(data[:10_000].tobytes())
    source = Source.wrap(buffer, "weights")
    assert not source.is_file and source.name == "weights" and memoryview(source) == buffer
    assert source.resident(0, 10_000) == b"\1" * -(-10_000 // PAGE)
    source.drop_cache(0, 10_000)
    source.prefetch(0, 10_000)
    source.release(0, 10_000)
    source.check_unchanged()
    assert memoryview(source) == data[:10_000].tobytes()
    with pytest.raises(BufferError):
        buffer.clear()
    source.close()
    buffer.clear()


def test_cache(source, data):
    make_cold(source)
    assert source.resident(PAGE + 1, PAGE) == b"\0\0"
    assert source.resident(len(data), 5) == source.resident(5, 0) == b""
    assert len(source.resident(0, 1 << 60)) == -(-len(data) // PAGE)
    assert memoryview(source)[2 * PAGE] == data[2 * PAGE]
    assert source.resident(2 * PAGE, 1) == b"\1"
    source.drop_cache(0, 0)
    assert source.resident(2 * PAGE, 1) == b"\1"
    source.close()
    for call in (source.resident, source.drop_cache):
        with pytest.raises(ValueError, match="is closed"):
            call(0, 1)


@pytest.mark.parametrize("change", ["cut", "longer", "written", "replaced"])
def test_file_that_changes(change, path, source):
    source.check_unchanged()
    status = path.stat()
    if change == "cut":
        os.truncate(path, 100)
    elif change == "longer":
        os.truncate(path, status.st_size + 1)
    elif change == "written":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    else:
        other = path.with_name("other")
        other.write_bytes(path.read_bytes())
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(other, path)
    words = {"cut": "has 100 bytes and had", "longer": "bytes and had", "written": "written to",
             "replaced": "another file"}
    with pytest.raises(FormatError, match=f"{path}.*{words[change]}.*load the program again"):
        source.check_unchanged()


def test_file_without_a_name_is_unchanged(path, source, data):
    path.unlink()
    source.check_unchanged()
    assert memoryview(source)[:5] == data[:5].tobytes()
    source.close()
    with pytest.raises(ValueError, match="is closed"):
        source.check_unchanged()


def test_change_is_seen_from_another_folder(path, monkeypatch, tmp_path):
    monkeypatch.chdir(path.parent)
    source = Source.open(path.name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    source.check_unchanged()
    path.rename(path.with_name("gone"))
    path.write_bytes(b"new")
    with pytest.raises(FormatError, match="another file"):
        source.check_unchanged()
    source.close()


def test_ahead_step():
    """A setting of the disk where the system tells it."""
    assert ahead_step_of(os.makedev(4095, 0)) == MIN_AHEAD
    assert ahead_step_of(os.stat(__file__).st_dev) >= MIN_AHEAD


def test_prefetch_reads_all_that_is_asked(tmp_path):
    """Also where that is more than the system reads for one advice."""
    path = tmp_path / "large"
    nbytes = 3 * ahead_step_of(os.stat(tmp_path).st_dev)
    path.write_bytes(b"x" * nbytes)
    source = Source.open(path)
    make_cold(source)
    source.prefetch(0, nbytes)
    deadline = time.monotonic() + 30
    while sum(source.resident(0, nbytes)) < 0.9 * nbytes / PAGE:
        assert time.monotonic() < deadline, "the range never came"
        time.sleep(0.01)
    source.close()
