"""Compiled programs in hosts in C, under AddressSanitizer, LeakSanitizer and
UndefinedBehaviorSanitizer: the library's C, all that Cython made of the core, and the hosts."""

import subprocess
from pathlib import Path

import pytest
from c_hosts import CC, OWN_FLAGS, OWN_SOURCES, environment, needs_compiler, sanitizer_options
from core_build import GENERATED_CALLS, sanitized, sanitized_objects
from core_runner import runs
from support import QUICK, write_arrays

from vkrt.capi.config import folder

HERE = Path(__file__).parent
BUILT = folder()
KINDS = "address,undefined"
OPTIONS = [f"-fsanitize={KINDS}", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer",
           "-g1", "-O1"]
pytestmark = [pytest.mark.driver, pytest.mark.once, needs_compiler, pytest.mark.skipif(
    not GENERATED_CALLS or QUICK,
    reason="the sources were not built here, or a short run is wanted")]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """The library's objects with sanitizers."""
    sanitized(tmp_path_factory.mktemp("objects") / "none")
    return [*sanitized_objects(KINDS, [*OWN_SOURCES, *GENERATED_CALLS], OWN_FLAGS).values(),
            *sanitized_objects(KINDS).values()]


def check(objects, tmp_path, source, *words, more=()):
    """Runs a host; what a sanitizer finds fails the test, with its report."""
    host = tmp_path / source.stem
    vma = BUILT.parent / "core" / "libvkrt_core.a.p" / "vma.cpp.o"
    subprocess.run([CC, source, HERE / "hosts" / "keep.c", *objects, vma, "-o", host, *OPTIONS,
                    *OWN_FLAGS, "-D_GNU_SOURCE", "-Wl,--gc-sections", "-rdynamic", "-ldl",
                    "-lpthread", *more], check=True)
    for finds_leaks in (True, False):
        done = subprocess.run([host, *map(str, words)], text=True, capture_output=True,
                              env=environment(**sanitizer_options(finds_leaks)))
        if "LeakSanitizer has encountered a fatal error" not in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]


def test_hosts(objects, compiled_of, tmp_path):
    """Sources, errors, states, shapes, threads, callbacks."""
    dynamic = compiled_of("conv-dyn", shapes=[[(1, 3, 30, 40)], [(1, 3, 16, 20)]])
    buffers = compiled_of("buffers")
    check(objects, tmp_path, HERE / "hosts" / "sources.c", compiled_of("mlp", weights="copy"))
    check(objects, tmp_path, HERE / "hosts" / "calls.c", dynamic, buffers)
    check(objects, tmp_path, HERE.parent.parent / "tools" / "hosts" / "repeat.c", buffers, 3)


@pytest.mark.parametrize("name, weights", [("superres_small", "copy"), ("mlp", "stream"),
                                           ("cases/attention", "copy")])
def test_submissions(objects, name, weights, compiled_of, tmp_path):
    """On buffers of the host's, with threads, a fork, and a run that is closed over."""
    path = compiled_of(name, weights=weights)
    inputs, (outputs, _) = runs(path)
    check(objects, tmp_path, HERE / "hosts" / "submissions.c", path,
          write_arrays(tmp_path / "in", inputs), write_arrays(tmp_path / "out", outputs),
          more=("-lvulkan",))


@pytest.mark.parametrize("name, weights", [("buffers", "auto"), ("coder", "copy")])
def test_damaged_programs(objects, name, weights, compiled_of, tmp_path):
    """Files of which single words were changed, with right checksums: an error, or a run."""
    path = compiled_of(name, weights=weights)
    check(objects, tmp_path, HERE / "hosts" / "damaged.c", path, 150)
