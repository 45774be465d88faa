"""The probe of an unknown driver, on the core alone: what it may do, and what is kept of it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from core_build import needs_build
from support import MODELS
from test_executions import needs_compiler, program

SOURCE = Path(__file__).with_name("map_probe.c")
FIELDS = ["driver_version", "driver_info", "cache_uuid", "device_id", "name", "kernel"]

pytestmark = [pytest.mark.driver, needs_build, needs_compiler]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "vkrt"


@pytest.fixture
def asked(tmp_path_factory, tmp_path):
    """Asks in a process of its own: three answers, and how often was tried for them."""
    made = program(SOURCE, "map_probe", tmp_path_factory.getbasetemp())

    def ask(how: str, what: str = "", path: Path = MODELS / "mlp.pte", dies: bool = False):
        done = subprocess.run([made, path, how, what], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
        is_none = done.stdout == "none\n"
        assert done.returncode == (9 if dies and not is_none else 0), done.stderr
        if is_none:
            pytest.skip("the device imports no pages")
        return tuple(map(int, done.stdout.split()))
    return ask


def kept(folder: Path) -> bytes:
    """What is kept of the one driver."""
    path, = folder.iterdir()
    content = path.read_bytes()
    assert path.suffix == ".vkrtcopied" and path.stat().st_mode & 0o777 == 0o600
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    return content[40:-32]


def test_a_probe_result_is_not_asked_for_twice(asked, folder):
    """A file that is no result of this device, or that others may have written, is written anew."""
    assert asked("read") == (1, 1, 1, 1)
    assert kept(folder) == b"yes "
    assert asked("read") == (1, 1, 1, 0)
    path, = folder.iterdir()
    good = path.read_bytes()
    for damaged in (b"", good[:-1], good + b"x", bytes([good[0] ^ 1]) + good[1:],
                    good.replace(b"yes", b"no "), good[:8] + bytes(32) + good[40:]):
        path.write_bytes(damaged)
        assert asked("read") == (1, 1, 1, 1)
        assert path.read_bytes() == good and list(folder.iterdir()) == [path]
    path.chmod(0o666)
    assert asked("read") == (1, 1, 1, 1)


@pytest.mark.parametrize("how", ["elsewhere", "refuse", "deaf"])
def test_drivers_that_do_not_read_files(asked, folder, how):
    """The device of one that does not answer is left alone until the process ends, which does not
    crash, although the driver is only then done."""
    assert asked(how) == (0, 0, 0, 1)
    assert kept(folder) == b"no  "
    assert asked("read") == (0, 0, 0, 0)


def test_a_process_that_does_not_survive_the_probe_is_the_last_to_try(asked, folder):
    asked("die", dies=True)
    assert kept(folder) == b"no  "
    assert asked("read") == (0, 0, 0, 0)


def test_what_could_not_be_tried_is_no_probe_result(asked, folder):
    assert asked("full") == (0, 0, 0, 3)
    assert not list(folder.iterdir())
    assert asked("read") == (1, 1, 1, 1)


@pytest.mark.parametrize("what", FIELDS)
def test_probe_results_are_of_one_version_of_a_driver_and_of_one_kernel(asked, what):
    assert asked("read") == (1, 1, 1, 1)
    assert asked("read", what) == (1, 1, 1, 1)


def test_a_file_of_less_than_a_page(asked, tmp_path):
    (tmp_path / "small").write_bytes(b"something")
    assert asked("read", path=tmp_path / "small") == (1, 1, 1, 1)
