"""The documents: their examples run and print what they say, their paths and lists are there."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from support import MODELS, find_model, need_model, python

from vkrt.cli import common
from vkrt.cli import main as cli
from vkrt.compiler.description import Description
from vkrt.runtime.open_device import OpenDevice

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(path for folder in ("", "vkrt", "tools", "tests")
                   for path in (ROOT / folder).glob("**/README.md" if folder else "README.md"))
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
README = TEXTS["README.md"]

# Programs that are not in the repository run only if a folder of VKRT_MODELS has them; this one
# stands for the others.
STAND_IN = MODELS / "mlp.pte"


def test_the_documents_are_found():
    assert {"README.md", "vkrt/README.md", "tools/README.md", "tests/README.md"} <= set(TEXTS)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 170
    own = TEXTS["vkrt/README.md"].split("## Words that only vkrt has\n")[1].split("\n## ")[0]
    assert own.count("\n| ") <= 2 + 20


# What somebody wants to know first comes first, each with words that it cannot do without.
SECTIONS = {
    "vkrt": ["| ExecuTorch's own Vulkan runtime |", "| ncnn |", "| ONNX Runtime", "| llama.cpp |"],
    "Where it runs": ["GPU", "Linux", "Python 3.10 to 3.14", "Raspberry Pi", "Android"],
    "Quickstart": ["git clone", "tools/quickstart", "minutes", "Nothing is published yet"],
    "Memory": ["![", "memory_budget", "vkrt compile"],
    "In Python": ["```python", "VkrtError"],
    "On the command line": ["$ vkrt info", "$ vkrt run", "Exit codes", "doctor"],
    "How to export a program": ["fp32", "fp16", "Dynamic shapes", "PT2E", "4-bit weights"],
    "Text, and a server": ["vkrt generate", "vkrt serve", "OpenAI"],
    "In C": ["vkrt-config", "find_package(vkrt)"],
    "Limits": ["Not there yet"],
    "Where to read on": ["vkrt/README.md", ".github/CONTRIBUTING.md"],
}


def test_the_readme_has_its_sections_in_order():
    parts = re.split(r"^##? (.*)\n", README, flags=re.MULTILINE)[1:]
    assert parts[::2] == list(SECTIONS)
    for name, text in zip(parts[::2], parts[1::2]):
        missing = [words for words in SECTIONS[name] if words not in text]
        assert not missing, f"{name}: {missing}"


def test_what_the_readme_promises_is_what_is_planned():
    """Programs of fixed sizes take what is planned, dynamic ones at most that."""
    assert "measured = planned to the byte (dynamic shapes: never above)" in README


CODES = {0: "done", cli.EXIT_FAILED: "failed", common.EXIT_USAGE: "wrong arguments",
         common.EXIT_UNSUPPORTED: "is missing", cli.EXIT_INTERRUPTED: "interrupted",
         common.EXIT_PIPE: "nobody reads the output"}


def test_exit_codes_are_those_of_the_command():
    line = re.search(r"\* Exit codes: (.*)", README)[1]
    rows = re.findall(r"^\| (\d+) \| (.*) \|", TEXTS["vkrt/cli/README.md"], re.MULTILINE)
    for said in (re.findall(r"\b(\d+) (\D*)", line), rows):
        assert [int(code) for code, _ in said] == sorted(CODES)
        assert all(CODES[int(code)] in words for code, words in said)


def test_extras_are_those_of_the_package():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    there = set(re.findall(r"^(\w+) = ", extras, re.MULTILINE))
    named = {extra for text in TEXTS.values()
             for words in re.findall(r"\.\[([\w,]+)\]'|setup-python ([a-z][\w,]*)", text)
             for extra in ",".join(words).strip(",").split(",")}
    assert {"text", "serve", "pictures", "grammar", "completion", "executorch"} <= named <= there


# Lines of the README for a shell that are not a `$ vkrt` (those are run below): which test runs
# them, or the words beside them that say what they need.
SHELL = {
    "git clone URL vkrt && cd vkrt": "URL: where you found this page",
    "tools/quickstart": ".ci/run: bash tools/quickstart",
    ". .venv/bin/activate": "tests/test_scripts.py: test_the_quickstart_says_how_to_go_on",
    "vkrt info tests/models/toy.pte": "tests/test_readme.py: test_commands",
    "vkrt run tests/models/mlp.pte --input tests/models/mlp.npz":
        "tests/test_readme.py: test_commands",
    "python tools/export/checkpoint.py FOLDER model.pte --quantize 4w --embedding --context 2048":
        "tests/executorch/test_recipes.py: test_a_language_model",
    "cc host.c -o host $(vkrt-config --cflags --libs)":
        "tests/capi/test_capi_readme.py: test_examples",
}


def test_every_line_for_a_shell_is_run_or_says_what_it_needs():
    lines = re.findall(r"^ {4,6}(?:\$ )?((?:git|tools/|\.|vkrt|python|pip|cc) ?\S.*?)(?:  .*)?$",
                       README, re.MULTILINE)
    run = {command for name, command, *_ in COMMANDS if name == "README.md"}
    assert set(lines) - run == set(SHELL) - run
    for line, where in SHELL.items():
        path, _, words = where.partition(": ")
        if (ROOT / path).is_file():
            assert words in (ROOT / path).read_text(encoding="utf-8"), line
            assert "test_commands" not in words or line in run
        else:
            assert where in README, line


def test_list_of_operators_is_up_to_date():
    done = python(ROOT / "tools" / "operators.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_map_has_every_package():
    table = TEXTS["vkrt/README.md"].split("| package or module |")[1].split("\n\n")[0]
    named = {name for row in table.splitlines()[2:]
             for name in re.findall("`([^`]*)`", row.split("|")[1])}
    packages = {path.stem for path in (ROOT / "vkrt").iterdir()
             if path.suffix == ".py" or any(path.glob("__init__.p*"))}
    assert {name for name in named if "/" not in name} == packages - {"__main__"}


@pytest.mark.parametrize("name", TEXTS)
def test_named_files_exist(name):
    text = TEXTS[name]
    named = set(re.findall(r"\b((?:tools|tests|vkrt|shaders)/[\w./-]*\w)", text))
    missing = {path for path in named if not (ROOT / path).exists()}
    links = {link for link in re.findall(r"\]\(([^)#:]+)\)", text)
             if not (ROOT / name).parent.joinpath(link).exists()}
    assert not missing and not links


def test_the_demos_figures_are_todays(device):
    if "llvmpipe" not in device.info.name:
        pytest.skip("the documents have the figures of lavapipe")
    with closing(Description(ROOT / "tools/demo/realesr-animevideov3-fp16.pte")) as description:
        plan = description.compile("forward", OpenDevice(device)).memory
    for name, value in (("weights", plan.weight_bytes), ("staging", plan.staging_bytes),
                        ("activations", plan.activation_bytes), ("planned peak", plan.peak_bytes),
                        ("measured peak", plan.peak_bytes)):
        line = f"    {name:<16}{value:>14,} B"
        assert line in TEXTS["tools/README.md"], f"{name} is {value:,}"


# Examples

PYTHON = [(name, code) for name, text in TEXTS.items()
          for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
# (document, command, note in brackets behind it, the output that is shown)
COMMANDS = [(name, *found) for name, text in TEXTS.items() for found in re.findall(
    r"^    \$ (vkrt .*?)(?:  +\((.*)\))?\n((?:    (?!\$ ).*\n)*)", text, re.MULTILINE)]
# What an output has of the machine: the driver and its versions, and times
OF_THE_MACHINE = re.compile(r"llvmpipe \(LLVM [\d.]+, \d+ bits\)|\d+(?:\.\d+)? m?s\b"
                            # Which kernels are compiled into a file is for the profile to say
                            r"|(?<=vkx, )[\d.]+ MB|\d+ shaders")
NUMBER = re.compile(r"(?<![\w.,])-?\d+\.\d+(?:e[-+]\d+)?")


@pytest.fixture
def folder(tmp_path):
    """Where examples find what they name."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "models").symlink_to(MODELS)
    named = {name for text in TEXTS.values() for name in re.findall(r"[\w-]+\.pte\b", text)}
    for name in named - {"nothing.pte"}:
        shutil.copy(find_model(name) or STAND_IN, tmp_path / name)
    for name in {name for text in TEXTS.values() for name in re.findall(r"[\w.-]+\.json\b", text)}:
        if found := find_model(name):
            shutil.copy(found, tmp_path / name)
    return tmp_path


def same(line: str, other: str) -> bool:
    """Whether two lines differ at most in what the machine decides, or in the last digits."""
    line, other = (OF_THE_MACHINE.sub("..", text.rstrip()) for text in (line, other))
    return NUMBER.sub("#", line) == NUMBER.sub("#", other) and all(
        math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-6)
        for a, b in zip(NUMBER.findall(line), NUMBER.findall(other)))


def test_the_comparison_sees_differences():
    assert same("llvmpipe (LLVM 15.0.6, 256 bits): 1.5 ms, mean -0.0202738",
                "llvmpipe (LLVM 19.1, 512 bits): 27 ms, mean -0.0202739")
    assert not same("mean 0.02", "mean 0.03") and not same("2,352 B", "2,353 B")
    assert not same("1 delegate", "2 delegates") and not same("mean 0.5", "mean 5")


def test_the_examples_are_found():
    assert len(PYTHON) >= 3 and len(COMMANDS) >= 6
    assert sum(bool(shown.strip()) for *_, shown in COMMANDS) >= 6


@pytest.mark.driver
@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_python_examples(number, folder):
    _, code = PYTHON[number]
    done = python("-c", f"import numpy as np, vkrt\n{code}", cwd=folder)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"# prints (.*)$", code, re.MULTILINE)
    assert done.stdout.splitlines() == said and len(said) == code.count("print(")


@pytest.mark.parametrize(("name", "command", "note", "shown"), COMMANDS,
                         ids=[f"{name}-{command}" for name, command, *_ in COMMANDS])
def test_commands(name, command, note, shown, folder, device, monkeypatch, capsys):
    """They run, and where the program is there, what is shown is printed: all of it, or with a note
    such as (the end of it) these lines in this order."""
    arguments = shlex.split(command)[1:]
    if arguments[0] == "generate":  # nothing stands in for a language model
        for word in arguments:
            if word.endswith((".pte", ".json")):
                need_model(word)
    monkeypatch.chdir(folder)
    for word in arguments:
        if word.endswith(".vkx"):
            cli.main(["compile", f"{Path(word).stem}.pte"])
    capsys.readouterr()
    code = cli.main(arguments)
    captured = capsys.readouterr()
    programs = [Path(word).name for word in arguments if word.endswith(".pte")]
    missing = [word for word in arguments if word.endswith(".pte") and not os.path.exists(word)]
    assert code == (cli.EXIT_FAILED if missing else 0), captured.err
    if "llvmpipe" not in device.info.name or not all(map(find_model, programs)) and not missing:
        return
    printed = (captured.err if missing else captured.out).rstrip("\n").splitlines()
    expected = [line[4:] for line in shown.rstrip("\n").splitlines()]
    if note:
        remaining = iter(printed)
        for line in expected:
            assert any(same(line, other) for other in remaining), f"{line!r} in {printed}"
    else:
        assert len(printed) == len(expected)
        for line, other in zip(expected, printed):
            assert same(line, other), f"{line!r}, {other!r}"
