"""The documents: their examples run and print what they say, their paths and lists are there."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import MODELS, find_model, need_model

from vkrt.cli import main as cli
from vkrt.description import Description

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
    assert len(README.splitlines()) <= 200
    glossary = TEXTS["vkrt/README.md"].split("## Glossary\n")[1].split("\n## ")[0]
    assert len(glossary.splitlines()) < 40


def test_list_of_operators_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "operators.py", "--check"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_map_has_every_room():
    table = TEXTS["vkrt/README.md"].split("| room |")[1].split("\n\n")[0]
    named = {name for row in table.splitlines()[2:]
             for name in re.findall("`([^`]*)`", row.split("|")[1])}
    rooms = {path.stem for path in (ROOT / "vkrt").iterdir()
             if path.suffix == ".py" or any(path.glob("__init__.p*"))}
    assert {name for name in named if "/" not in name} == rooms - {"__main__"}


@pytest.mark.parametrize("name", TEXTS)
def test_named_files_exist(name):
    text = TEXTS[name]
    named = set(re.findall(r"\b((?:tools|tests|vkrt|shaders)/[\w./-]*\w)", text))
    missing = {path for path in named if not (ROOT / path).exists()}
    links = {link for link in re.findall(r"\]\(([^)#:]+)\)", text)
             if not (ROOT / name).parent.joinpath(link).exists()}
    assert not missing and not links


@pytest.mark.driver
def test_the_demos_figures_are_todays(device):
    if "llvmpipe" not in device.info.name:
        pytest.skip("the documents have the figures of lavapipe")
    description = Description(ROOT / "tools" / "demo" / "realesr-animevideov3-fp16.pte")
    try:
        plan = description.predict("forward", device)[1]
    finally:
        description.close()
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
OF_THE_MACHINE = re.compile(r"llvmpipe \(LLVM [\d.]+, \d+ bits\)|\d+(?:\.\d+)? m?s\b")
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
    done = subprocess.run([sys.executable, "-c", f"import numpy as np, vkrt\n{code}"], cwd=folder,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"# prints (.*)$", code, re.MULTILINE)
    assert done.stdout.splitlines() == said and len(said) == code.count("print(")


@pytest.mark.driver
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
    if "--check" in arguments:
        cli.main(["pack", arguments[1]])
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
