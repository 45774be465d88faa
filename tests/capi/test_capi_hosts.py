"""Hosts in C: every call, and what becomes of the process that they are made in."""

import hashlib
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from c_hosts import build, either, environment, need_headers, needs_compiler, program_of, run
from core_cache import Owner, read_cache
from hostile_device import environment_of
from support import MODELS, QUICK, need_imports, run_python

import vkrt
from vkrt.capi.codes import CODES, INTERNAL
from vkrt.capi.config import LIBRARY, folder
from vkrt.compiler import plan_cache

# What files of probe results on imports end with
PROBE_RESULT = ".vkrtcopied"
HOSTS = Path(__file__).parent / "hosts"
REPEAT = HOSTS.parent.parent.parent / "tools" / "hosts" / "repeat.c"
pytestmark = [pytest.mark.driver, needs_compiler]


def host(name, tmp_path):
    return build(HOSTS / f"{name}.c", tmp_path / name, "-D_GNU_SOURCE", "-lpthread")


@either
def test_sources_and_errors(is_compiled, compiled_of, tmp_path):
    """A program from a path, memory and a part of a file; errors; nothing of the host's changed."""
    path = program_of(compiled_of, "mlp", is_compiled)
    said = run(host("sources", tmp_path), path).splitlines()
    assert said[0].startswith("version ") and said[1:] == ["sources -0.0133199", "errors", "forks"]


@either
def test_calls(is_compiled, compiled_of, tmp_path):
    shapes = [[(1, 3, 30, 40)], [(1, 3, 16, 20)]]
    said = run(host("calls", tmp_path),
               program_of(compiled_of, "conv-dyn", is_compiled, "auto", shapes=shapes),
               program_of(compiled_of, "buffers", is_compiled, "auto"))
    assert said.split("\n") == ["dynamic 5120 of 19200 bytes", "states 289 bytes", "callbacks",
                                "options", "threads", ""]


@either
def test_a_host_s_own_device(is_compiled, compiled_of, tmp_path):
    need_headers(tmp_path)
    made = build(HOSTS / "device.c", tmp_path / "device", "-lvulkan",
                 "-Wno-missing-field-initializers")
    path = program_of(compiled_of, "mlp", is_compiled)
    assert run(made, path).split() == ["runs", "-0.197427"]


def test_without_a_home_the_message_says_what_to_do(tmp_path):
    done = subprocess.run([host("sources", tmp_path), MODELS / "mlp.pte"], text=True,
                          capture_output=True, timeout=300,
                          env=environment(VKRT_HOME=str(tmp_path)))
    assert done.returncode == 1
    said = done.stdout
    assert "vkrt" in said and str(tmp_path) in said
    assert "mlp.pte is no compiled program (.vkx), and others need Python" in said


def test_a_host_that_ends_python_and_starts_another(tmp_path):
    """Nothing of vkrt is alive in the second one."""
    python = f"libpython{sys.version_info[0]}.{sys.version_info[1]}.so.1.0"
    said = run(host("ended", tmp_path), MODELS / "mlp.pte", python)
    assert said == "Python has been ended in this process, and vkrt with it\n"


def test_a_library_that_is_closed_and_opened_again(tmp_path):
    """It knows of the Python that it started: a child that is forked then is refused."""
    forked = next(code for kind, code in CODES if kind is vkrt.ForkedError)
    said = run(host("reopened", tmp_path), folder() / LIBRARY)
    assert said.split() == ["0", str(forked), "0"]


def whole(path):
    """Whether a file of the cache is one that the next process may take."""
    data = path.read_bytes()
    if path.suffix == plan_cache.SUFFIX:
        return plan_cache.from_bytes(data, 1) is not None
    if path.suffix == PROBE_RESULT:
        return hashlib.sha256(data[:-32]).digest() == data[-32:]
    return read_cache(path, Owner(*struct.unpack_from("<12xIII16s", data))) != b""


def test_a_host_that_is_killed_leaves_whole_files(device, tmp_path):
    """Cached plans, results of probes of imports, and compiled pipelines of a device whose driver
    gives them: a file is there whole or not at all, whenever the host is killed. Writing is slow
    there, and every second moment is one shortly after a file appears."""
    need_imports(device)
    made = build(REPEAT, tmp_path / "repeat", str(HOSTS / "slow.c"), "-D_GNU_SOURCE", "-rdynamic")
    caches = tmp_path / "vkrt"
    words = (MODELS / "mlp.pte", 1)
    variables = {**environment_of("mali"), "XDG_CACHE_HOME": str(tmp_path),
                 "VKRT_PLAN_CACHE": "auto", "VKRT_PIPELINE_CACHE": "auto"}

    def finished():
        return [path for path in caches.iterdir() if not path.name.startswith(".")]

    began = time.monotonic()
    run(made, *words, **variables)
    lasts = time.monotonic() - began
    kinds = {".vkpipelines", PROBE_RESULT, plan_cache.SUFFIX}
    assert {path.suffix for path in finished()} == kinds
    random = np.random.default_rng(5)
    for number in range(4 if QUICK else 12):
        # A quarter of them finds files, the others write them.
        for path in finished() if number % 4 else ():
            path.unlink()
        before = len(list(caches.iterdir()))
        child = subprocess.Popen([made, *map(str, words)], env=environment(**variables),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + (lasts if number % 2 else random.uniform(0, lasts))
        while time.monotonic() < end:
            if number % 2 and len(list(caches.iterdir())) > before:
                time.sleep(random.uniform(0, 0.05))
                break
        child.kill()
        child.wait()
        assert all(map(whole, finished())), number
    # The next goes on, and what was not finished goes with what it writes.
    for path in finished():
        path.unlink()
    run(made, *words, **variables)
    assert len(finished()) == len(list(caches.iterdir())) == len(kinds)


# What joins the Python that runs: ctypes calls without Python's lock, as any host would.
JOIN = """
    import ctypes
    library = ctypes.{kind}({library!r})
    library.vkrt_last_error_text.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    code = library.vkrt_load({path!r}.encode(), None, ctypes.byref(program))
    print(code, library.vkrt_last_error_text().decode())
    if not code:
        print(library.vkrt_close(program))
"""


def joining(kind):
    return JOIN.format(kind=kind, library=str(folder() / LIBRARY), path=str(MODELS / "mlp.pte"))


@pytest.mark.parametrize("kind", ["CDLL", "PyDLL"])
def test_a_python_that_runs_is_joined(kind):
    assert run_python(joining(kind)).split() == ["0", "0"]


@pytest.mark.parametrize(("name", "expected"), [("code_of", INTERNAL), ("text_of", 5)])
def test_an_error_that_cannot_be_described_is_one(name, expected):
    """As where there is no memory left for its text. Without it there is still its code."""
    code = f"import vkrt.capi.c_values as values; values.{name} = None\n" + textwrap.dedent(
        joining("CDLL").replace("mlp.pte", "mlp.npz"))
    assert run_python(code) == f"{expected} an error that could not be described\n"


@pytest.mark.parametrize("kind", ["CDLL", "PyDLL"])
def test_a_sub_interpreter_is_refused(kind):
    """Where the call comes with its lock, or where it is its thread; no wait without end."""
    if sys.version_info >= (3, 12):
        pytest.skip("ctypes is no module of sub-interpreters there")
    code = joining(kind)
    said = run_python(f"""
        import _xxsubinterpreters as interpreters, textwrap
        interpreters.run_string(interpreters.create(), textwrap.dedent({code!r}))
    """)
    if kind == "PyDLL":
        assert said.startswith("1 called from a sub-interpreter")
    else:
        assert said.split()[0] in "01"
