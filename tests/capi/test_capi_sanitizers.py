"""Hosts in C under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer.

The hosts and the library's own C are compiled with them. In the core (for that see
test_compiled_sanitizers.py), in the extension modules and in drivers, which are not, they see what
goes through malloc, free and the functions of the C library: also Python's objects, which come from
malloc here. leaks.txt says which leaks are let pass.
"""

import os
import subprocess
import sysconfig
import wave
from functools import cache
from pathlib import Path

import pytest
from c_hosts import CC, FOUND, OWN_FLAGS, OWN_SOURCES, needs_compiler, run, sanitizer_options
from support import MODELS, need_model

from vkrt.capi.config import folder as folder_of_library

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OPTIONS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
           "-fno-omit-frame-pointer", "-g", "-rdynamic"]
LEAKING = """
#include <stdlib.h>
static void *volatile kept;
int main(void) {
    kept = malloc(10000);
    kept = NULL;
    return 0;
}
"""
pytestmark = [pytest.mark.driver, pytest.mark.once, needs_compiler]


def compiled(target, *sources, more=()):
    """Whether a host is there now, with the library's C in it.

    Args:
        more: what is linked behind that.
    """
    assert CC is not None
    done = subprocess.run(
        [CC, *map(str, sources), "-o", str(target), *OPTIONS, *OWN_FLAGS,
         f"-I{sysconfig.get_paths()['include']}", *more, "-ldl", "-lpthread"],
        capture_output=True, text=True)
    return done.returncode == 0


@cache
def finds_leaks(folder):
    """Whether leaks are found here, which takes a debugger's rights; skips without sanitizers."""
    source = folder / "leaking.c"
    source.write_text("#include <Python.h>\n" + LEAKING)
    if not compiled(folder / "leaking", source):
        pytest.skip("no sanitizers, or no headers of Python")
    done = subprocess.run([folder / "leaking"], env={**os.environ, **sanitizer_options(True)},
                          capture_output=True, text=True)
    if done.returncode == FOUND:
        assert "10000 byte" in done.stderr
    return done.returncode == FOUND


def check(tmp_path_factory, source, *words):
    """Runs a host; what a sanitizer finds fails the test, with its report."""
    folder = tmp_path_factory.getbasetemp()
    leaks = finds_leaks(folder)
    made = folder / f"sane-{source.stem}"
    if not made.exists():
        assert compiled(made, source, HERE / "hosts" / "keep.c", *OWN_SOURCES,
                        more=[folder_of_library() / "libvkrt.a"])
    return run(made, *words, PYTHONMALLOC="malloc", **sanitizer_options(leaks))


@pytest.mark.parametrize("name, words", [
    ("hosts/sources.c", ["mlp.pte"]), ("hosts/calls.c", ["conv-dyn.pte", "buffers.pte"]),
    ("repeat.c", ["mlp.pte", "4"]), ("repeat.c", ["buffers.pte", "2"])])
def test_hosts(name, words, tmp_path_factory):
    source = HERE / name if "/" in name else ROOT / "tools" / "hosts" / name
    check(tmp_path_factory, source,
          *(MODELS / word if word.endswith(".pte") else word for word in words))


def test_picture(tmp_path, tmp_path_factory):
    picture = tmp_path / "picture.ppm"
    picture.write_bytes(b"P6 22 18 255\n" + bytes(range(198)) * 6)
    said = check(tmp_path_factory, ROOT / "tools" / "hosts" / "picture.c",
                 MODELS / "superres_small.pte", picture)
    assert len(said.splitlines()) == 5


def test_speech(tmp_path, tmp_path_factory):
    program = need_model("silero-vad.pte")
    with wave.open(str(tmp_path / "quiet.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 1600))
    assert check(tmp_path_factory, ROOT / "tools" / "hosts" / "speech.c", program,
                 tmp_path / "quiet.wav") == ""
