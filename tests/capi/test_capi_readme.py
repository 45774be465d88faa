"""The complete host in the documents is built as they say, and prints what they say."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from c_hosts import build, environment, flags, needs_compiler, run
from support import MODELS

from vkrt.capi.config import LIBRARY, folder

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "vkrt" / "capi" / "README.md"]
EXAMPLE = re.compile(r"^```c\n((?:.*\n)*?)^```\n(?:.*\n)*?^    \$ (cc .*)\n    \$ (.*)\n"
                     r"((?:    .*\n)+)", re.MULTILINE)
EXAMPLES = [(path, *found) for path in DOCUMENTS for found in EXAMPLE.findall(path.read_text())]
pytestmark = [pytest.mark.driver, needs_compiler]


def test_there_is_an_example():
    assert ROOT / "vkrt" / "capi" / "README.md" in {example[0] for example in EXAMPLES}


def check(folder, code, command, call, output, **more):
    """Builds a host in a folder and runs it there: it prints what the document says."""
    (folder / "host.c").write_text(code)
    command = command.replace("$(vkrt-config --cflags --libs)", shlex.join(flags()))
    subprocess.run(shlex.split(command), cwd=folder, check=True)
    done = subprocess.run(call, cwd=folder, env=environment(**more), text=True,
                          capture_output=True, check=True)
    assert done.stdout == re.sub("^    ", "", output, flags=re.MULTILINE)


@pytest.mark.parametrize("path, code, command, call, output", EXAMPLES,
                         ids=lambda value: value.parent.name if isinstance(value, Path) else "")
def test_examples(path, code, command, call, output, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "models").symlink_to(MODELS)
    check(tmp_path, code, command, call, output)


def test_the_example_with_a_compiled_program(compiled_of, tmp_path):
    """It prints the same, without Python."""
    _, code, command, call, output = next(example for example in EXAMPLES
                                          if example[0].parent.name == "capi")
    assert "tests/models/mlp.pte" in code
    compiled_of("mlp")
    check(tmp_path, code.replace("tests/models/mlp.pte", "mlp.vkx"), command, call, output,
          VKRT_HOME="/nowhere")


def test_the_section_is_short():
    for path in DOCUMENTS:
        for section in re.findall(r"^## Embedding\n(.*?)^## ", path.read_text(),
                                  re.DOTALL | re.MULTILINE):
            assert len(section.splitlines()) <= 30, path


def test_python_is_found_where_the_library_lies(tmp_path):
    """In a virtual environment that has vkrt, without any word about where it is."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not Path(sys.prefix, "pyvenv.cfg").exists():
        pytest.skip("not a virtual environment")
    real = Path(sys.prefix, "lib", version, "site-packages")
    packages = tmp_path / "lib" / version / "site-packages"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / version).symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), tmp_path)
    packages.mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name == "vkrt":
            shutil.copytree(entry, packages / "vkrt")
        elif entry.suffix == ".pth" or "vkrt" in entry.name or entry.name.startswith("numpy"):
            (packages / entry.name).symlink_to(entry)
    (packages / "vkrt" / "capi").mkdir(parents=True, exist_ok=True)
    shutil.copy(folder() / LIBRARY, packages / "vkrt" / "capi")
    host = build(Path(__file__).parent / "hosts" / "sources.c", tmp_path / "host", "-D_GNU_SOURCE")
    said = run(host, MODELS / "mlp.pte", VKRT_HOME="",
               LD_LIBRARY_PATH=str(packages / "vkrt" / "capi"))
    assert said.splitlines()[-1] == "forks"
