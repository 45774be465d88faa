"""Every tool runs once with its defaults on a small program, on the first of the drivers."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from runpy import run_path

import pytest
from support import MODELS

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools"
MODEL = str(MODELS / "conv_mix.pte")

# tool -> its arguments: what it has to be given, and fewer repetitions where its defaults are many
RUN = {
    "check/exported.py": [str(MODELS / "random")],
    "check/fuzz.py": [str(MODELS / "mlp.pte"), "--count", "20"],
    "check/random_networks.py": ["--count", "12"],
    "check/results.py": [str(MODELS / "mlp.pte"), "--runs", "1"],
    "check/texts.py": [str(MODELS / "llama.pte"), "--count", "2"],
    "check/without_python.py": [str(MODELS / "mlp.pte"), "--storages", "buffer"],
    "demo.py": [],
    "measure/arena.py": [MODEL],
    "measure/compile_times.py": ["--nodes", "20", "40"],
    "measure/bench_kernels.py": ["--only", "linear, a row"],
    "measure/footprint.py": [MODEL],
    "measure/memory_over_time.py": [MODEL],
    "measure/startup.py": [MODEL, "--times", "1"],
    "measure/streaming.py": [MODEL, "--rounds", "1"],
    "operators.py": ["--check"],
    "records.py": ["--check"],
}
# why tools are not run here -> these tools
WHY_NOT_RUN = {
    "a part of without_python.py": "check/without_python.c",
    "needs PyTorch": "check/expectations.py measure/against.py",
    "builds vkrt anew with each of many faults": "check/faults.py",
    "a part of fuzz.py": "check/mutations.py",
    "needs PyTorch and ExecuTorch, or is a part of one that does": " ".join(
        f"export/{path.name}" for path in (TOOLS / "export").glob("*.py")),
    "what the tools beside it share": "measure/fresh.py",
    "needs a program of export/diffusion.py": "diffusion.py",
    "a part of setup-python": "find-python",
    "makes a whole system; test_scripts.py has its parts": "fresh-system",
    "builds a compiler of shaders, in a container for wheels": "manylinux",
    "needs PyTorch and ExecuTorch; test_architectures.py has its parts": "measure/architectures.py",
    "needs a build of llama.cpp": "measure/bench_llama.py",
    "installs packages; test_peers.py has its parts": "measure/bench_peers.py",
    "needs drivers of GPUs; tests/gpus has its parts": "measure/gpu_cost.py",
    "test_loads_are_timed runs it, on a file of its own": "measure/loading.py",
    "a part of startup.py": "measure/startup.c",
    "installs packages": "quickstart setup-python setup-system",
    "a part of the scripts that install": "quietly.sh",
    "runs these tests": "test",
    "installs packages and builds everything anew": "wheels",
}
NOT_RUN = {tool for tools in WHY_NOT_RUN.values() for tool in tools.split()}


def test_fixes_that_are_taken_out_are_there():
    faults = run_path(str(TOOLS / "check" / "faults.py"))["FAULTS"]
    assert [(name, file) for name, changes, _, _ in faults for file, old, _ in changes
            if old not in (ROOT / file).read_text()] == []
    # A test that is not there would seem to notice.
    assert [arguments for *_, arguments in faults
            if not (ROOT / arguments.split()[0]).exists()] == []


def run(command: list[str], folder: Path) -> str:
    """What a command prints; its failure fails the test."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}: {done.returncode}\n{done.stdout}"
    return done.stdout


def test_every_tool_is_run_or_says_why_not():
    there = {str(path.relative_to(TOOLS)) for folder in (".", "check", "measure")
             for path in (TOOLS / folder).iterdir() if path.is_file() and path.suffix != ".md"}
    assert not set(RUN) & NOT_RUN
    assert there == {tool for tool in set(RUN) | NOT_RUN if not tool.startswith("export/")}


@pytest.mark.parametrize("tool", RUN)
def test_a_tool_runs(tool, tmp_path):
    if tool == "demo.py":
        pytest.importorskip("PIL")
    assert run([sys.executable, str(TOOLS / tool), *RUN[tool]], tmp_path).strip() \
        or tool in ("operators.py", "records.py")


def test_loads_are_timed(tmp_path):
    """Of a copy that no other test maps, on the checkout's file system: pages of files in memory,
    or of files in use, stay in the system's cache."""
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        said = run([sys.executable, str(TOOLS / "measure" / "loading.py"),
                    shutil.copy(MODEL, folder), "--rounds", "1"], tmp_path)
    assert re.search("^cold +pread ", said, re.MULTILINE)


@pytest.mark.parametrize("tool", sorted(tool for tool in NOT_RUN if tool.endswith(".py")))
def test_other_tools_are_python_that_imports_what_is_there(tool):
    """Their syntax, and every name that they import from vkrt and from each other."""
    for node in ast.walk(ast.parse((TOOLS / tool).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module.split(".")[0] == "vkrt":
            names = "; ".join(f"from {node.module} import {alias.name}" for alias in node.names)
            exec(names, {})
        elif (beside := (TOOLS / tool).with_name(f"{node.module}.py")).exists():
            text = beside.read_text(encoding="utf-8")
            assert all(re.search(rf"\b{alias.name}\b", text) for alias in node.names)
