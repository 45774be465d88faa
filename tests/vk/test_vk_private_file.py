"""Files of caches that others may have written are as if they were not there."""

import os
import stat
import subprocess
import tempfile

import pytest

from vkrt.files.replaceable import is_replaceable
from vkrt.vk import private_file

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def path(folder):
    assert private_file.put(folder / "file", b"con", b"tent")
    assert private_file.read(folder / "file", 7) == b"content"
    return folder / "file"


def test_a_new_file_is_private(tmp_path):
    """Whatever the process's umask, and the folder too if it is made."""
    old = os.umask(0)
    try:
        assert private_file.put(tmp_path / "a" / "file", b"content")
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("a", "a/file")]
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize("mode", [0o660, 0o606, 0o620, 0o602, 0o666, 0o777], ids=oct)
def test_a_file_that_others_write(path, mode):
    path.chmod(mode)
    assert private_file.read(path, 100) is None
    assert private_file.put(path, b"new") and private_file.read(path, 100) == b"new"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o730, 0o777], ids=oct)
def test_a_folder_that_others_write(path, folder, mode):
    folder.chmod(mode)
    assert private_file.read(path, 100) is None
    assert not private_file.put(path, b"new") and path.read_bytes() == b"content"
    folder.chmod(mode | stat.S_ISVTX)  # where others cannot put a file in the place of this one
    assert private_file.read(path, 100) == b"content"


@as_root
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_somebody_elses(path, folder, what):
    os.chown(path if what == "file" else folder, NOBODY, NOBODY)
    assert private_file.read(path, 100) is None
    assert private_file.put(path, b"new") == (what == "file")


@as_root
def test_what_is_roots():
    """Who is not root may read it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "file")
        assert private_file.put(path, b"content")
        os.chmod(path, 0o644)
        os.seteuid(NOBODY)
        try:
            assert private_file.read(path, 100) == b"content"
            assert not private_file.put(path, b"new")
        finally:
            os.seteuid(0)


def test_links_are_not_followed(path, folder, tmp_path):
    (folder / "link").symlink_to(path)
    assert private_file.read(folder / "link", 100) is None
    (tmp_path / "other").symlink_to(folder)
    assert private_file.read(tmp_path / "other" / "file", 100) is None
    assert not private_file.put(tmp_path / "other" / "file", b"new")
    # The new file takes the link's place, and what the link led to stays.
    assert private_file.put(folder / "link", b"new")
    assert not (folder / "link").is_symlink() and path.read_bytes() == b"content"


def test_what_is_no_file(folder):
    """A pipe that nobody writes to keeps nobody waiting."""
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "folder").mkdir()
    for name in ("pipe", "folder", "nothing"):
        assert private_file.read(folder / name, 100) is None


def test_one_byte_more_than_the_limit(path):
    assert private_file.read(path, 7) == b"content"
    assert private_file.read(path, 6) is None


def test_one_byte_more_than_the_folder_may_hold(folder):
    """Then the oldest file goes, and no other."""
    for number, name in enumerate("abcd"):
        private_file.put(folder / f"{name}.kind", bytes(100))
        os.utime(folder / f"{name}.kind", ns=(number, number))
    (folder / "other").write_bytes(bytes(100))
    keep = str(folder / "a.kind")
    private_file.prune(folder, keep, ".kind", 400)
    assert sorted(os.listdir(folder)) == ["a.kind", "b.kind", "c.kind", "d.kind", "other"]
    private_file.put(folder / "d.kind", bytes(101))
    private_file.prune(folder, keep, ".kind", 400)
    assert sorted(os.listdir(folder)) == ["a.kind", "c.kind", "d.kind", "other"]


def test_files_of_other_kinds_stay(folder):
    """A file takes the place of one with the same magic or of an empty one, not of another."""
    path = folder / "file"
    for there, good in ((None, True), (b"", True), (b"magic and more", True), (b"magi", False),
                        (b"photo", False)):
        path.unlink(missing_ok=True)
        if there is not None:
            path.write_bytes(there)
        assert private_file.put(path, b"magic", magic=b"magic") == good
        assert path.read_bytes() == (b"magic" if good else there)
    path.unlink()
    os.mkfifo(path)
    assert not private_file.put(path, b"magic", magic=b"magic") and path.is_fifo()
    assert is_replaceable(path, bytes.isdigit, renames=False)


def test_what_was_not_finished_goes(folder):
    """A file of this name whose writer has gone; no other name, no writer that is alive."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    stay = [f".a-{os.getpid()}-1", f".b-{ended.pid}-1", f"a-{ended.pid}-1", f".a-{10 ** 30}-1",
            ".a-\u00b2-1", ".a-x-1", ".a-1"]
    for name in [*stay, f".a-{ended.pid}-1"]:
        (folder / name).write_bytes(b"half")
    assert private_file.put(folder / "a", b"whole")
    assert sorted(path.name for path in folder.iterdir()) == sorted([*stay, "a"])
