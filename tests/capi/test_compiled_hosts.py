"""Compiled programs in hosts without Python, which link libvkrt."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_hosts import CC, build, flags, needs_compiler, run
from core_runner import runs
from hostile_device import environment_of
from support import MODELS, need_imports, run_python, write_arrays

import vkrt

HERE = Path(__file__).parent

pytestmark = pytest.mark.driver


@needs_compiler
@pytest.mark.parametrize("name", ["mlp", "kept_attention", "llama_static"])
def test_a_process_without_python(name, compiled_of, tmp_path):
    host = build(HERE / "hosts" / "files.c", tmp_path / "host")
    out = compiled_of(name)
    inputs, expected = runs(out)
    said = run(host, out, write_arrays(tmp_path / "in", inputs), tmp_path / "out",
               VKRT_HOME="/nowhere").split()
    planned, measured, python = map(int, said)
    assert planned == measured and not python
    assert (tmp_path / "out").read_bytes() == b"".join(
        x.tobytes() for outputs in expected for x in outputs)


@needs_compiler
@pytest.mark.parametrize("profile, answer", [("intel", b"yes "), ("losing", b"no  ")])
def test_a_driver_of_which_nothing_is_known(profile, answer, device, tmp_path):
    """Whether it reads the pages of files is tried once, in a device of its own."""
    need_imports(device)
    host = build(HERE / "hosts" / "files.c", tmp_path / "host")
    around = {"XDG_CACHE_HOME": str(tmp_path), "VKRT_HOME": "/nowhere"}
    out = tmp_path / "net.vkx"
    run_python("import sys, vkrt; vkrt.compile(*sys.argv[1:])", str(MODELS / "mlp.pte"), str(out),
               **{**environment_of("intel"), **around, "XDG_CACHE_HOME": str(tmp_path / "other")})
    (tmp_path / "in").write_bytes(bytes(360))
    for _ in range(2):
        done = subprocess.run([host, out, tmp_path / "in", tmp_path / "out"], text=True,
                              capture_output=True,
                              env={**os.environ, **environment_of(profile), **around})
        assert (done.returncode == 0) == (answer == b"yes "), done.stdout
        assert (answer == b"yes ") != ("a probe did not show" in done.stdout)
        kept, = (tmp_path / "vkrt").glob("*.vkrtcopied")
        assert kept.read_bytes()[40:44] == answer
    with vkrt.load(MODELS / "mlp.pte") as program:
        expected, = program.run(np.zeros((3, 30), "float32"))
    if answer == b"yes ":
        assert (tmp_path / "out").read_bytes()[:120] == np.asarray(expected).tobytes()


@needs_compiler
def test_a_host_that_links_the_archive(compiled_of, tmp_path):
    """Statically, and with no shared object of vkrt."""
    out = compiled_of("mlp")
    host = tmp_path / "host"
    subprocess.run([CC, HERE / "hosts" / "files.c", "-o", host, *flags("--static")], check=True)
    inputs, expected = runs(out)
    run(host, out, write_arrays(tmp_path / "in", inputs), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"".join(
        x.tobytes() for outputs in expected for x in outputs)
