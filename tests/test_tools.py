"""Every tool runs once with its defaults on a small program."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import MODELS

pytestmark = pytest.mark.driver

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools"
MODEL = str(MODELS / "conv_mix.pte")

# tool -> its arguments: what it has to be given, and fewer repetitions where its defaults are many
RUN = {
    "bench_stream.py": [MODEL, "--rounds", "1"],
    "check_models.py": [str(MODELS / "mlp.pte"), "--runs", "1"],
    "demo.py": [],
    "footprint.py": [MODEL],
    "fuzz.py": [str(MODELS / "mlp.pte"), "--count", "20"],
    "memory_timeline.py": [MODEL],
    "operators.py": ["--check"],
    "results.py": [MODEL],
}
# tool -> why it is not run here
NOT_RUN = {
    "bench_load.py": "test_loads_are_timed runs it, on a file of its own",
    "check_samples.py": "needs PyTorch",
    "export_cases.py": "needs PyTorch and ExecuTorch",
    "export_dynamic.py": "needs PyTorch and ExecuTorch",
    "export_linears.py": "needs PyTorch and ExecuTorch",
    "export_models.py": "needs PyTorch and ExecuTorch",
    "export_realesr.py": "needs PyTorch and ExecuTorch",
    "export_special.py": "needs PyTorch and ExecuTorch",
    "export_zoo.py": "needs PyTorch and ExecuTorch",
    "exporting.py": "what the exporting tools share",
    "fuzz_mutations.py": "a part of fuzz.py",
    "fresh-system": "makes a whole system; test_scripts.py has its parts",
    "plot.py": "a part of bench_stream.py and memory_timeline.py",
    "smaps.py": "a part of footprint.py",
    "stream_runs.py": "a part of bench_stream.py",
    "tune.py": "takes minutes; test_tuning.py has its parts",
    "find-python": "a part of setup-python",
    "quickstart": "installs packages",
    "quietly.sh": "a part of the scripts that install",
    "setup-python": "installs packages",
    "setup-system": "installs packages",
    "test": "runs these tests",
}


def run(command: list[str], folder: Path) -> str:
    """What a command prints; its failure fails the test."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}: {done.returncode}\n{done.stdout}"
    return done.stdout


def test_every_tool_is_run_or_says_why_not():
    there = {path.name for path in TOOLS.iterdir() if path.is_file() and path.suffix != ".md"}
    assert not set(RUN) & set(NOT_RUN)
    assert there == set(RUN) | set(NOT_RUN)


@pytest.fixture
def own_model():
    """A copy of the model that no other test maps, on the checkout's file system: pages of files in
    memory, or of files in use, stay in the system's cache."""
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        yield shutil.copy(MODEL, folder)


@pytest.mark.parametrize("tool", RUN)
def test_a_tool_runs(tool, tmp_path):
    if tool == "demo.py":
        pytest.importorskip("PIL")
    assert run([sys.executable, str(TOOLS / tool), *RUN[tool]], tmp_path).strip() \
        or tool == "operators.py"


def test_loads_are_timed(tmp_path, own_model):
    assert "| pread" in run([sys.executable, str(TOOLS / "bench_load.py"), own_model, "--rounds",
                             "1"], tmp_path)


@pytest.mark.parametrize("tool", [t for t, why in NOT_RUN.items() if t.endswith(".py")])
def test_other_tools_are_python_that_imports_what_is_there(tool):
    """Their syntax, and every name that they import from vkrt and from each other."""
    for node in ast.walk(ast.parse((TOOLS / tool).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module.split(".")[0] == "vkrt":
            names = "; ".join(f"from {node.module} import {alias.name}" for alias in node.names)
            exec(names, {})
        elif (TOOLS / f"{node.module}.py").exists():
            text = (TOOLS / f"{node.module}.py").read_text(encoding="utf-8")
            assert all(re.search(rf"\b{alias.name}\b", text) for alias in node.names)
