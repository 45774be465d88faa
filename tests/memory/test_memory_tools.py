"""The scripts that show what memory does: figures that are there and add up, no times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import MODELS

TOOLS = Path(__file__).parent.parent.parent / "tools"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads smaps")


def run(tool: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, str(TOOLS / tool), *arguments], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout


def rows(text: str) -> dict[str, list[str]]:
    """Cells of a markdown table by the first of each row."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines}


@linux
@pytest.mark.parametrize("fill", ["after", "each"])
def test_bench_hugepages(fill):
    table = rows(run("bench_hugepages.py", "--mb", "8", "--rounds", "1", "--fill", fill))
    used, resident, lost = (
        [float(x) for x in table[name]]
        for name in ("bytes of tensors, MB", "resident, MB", "lost to rounding, MB"))
    assert used[0] == used[1] == used[2] > 8
    for i in range(3):
        assert abs(resident[i] - used[i] - lost[i]) < 0.11  # the figures are rounded
    gaps = [float(x) for x in table["gaps between tensors, MB"]]
    assert gaps[0] == gaps[2] == 0 < gaps[1]


@linux
def test_bench_hugepages_takes_the_sizes_of_a_program():
    text = run("bench_hugepages.py", str(MODELS / "mlp.pte"), "--mb", "1", "--rounds", "1")
    assert "mlp.pte: " in text
    assert float(rows(text)["bytes of tensors, MB"][0]) >= 1


def test_bench_hugepages_needs_weights():
    done = subprocess.run([sys.executable, str(TOOLS / "bench_hugepages.py"),
                           str(MODELS / "elementwise.pte")], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "bytes in itself, too small a part of 384,000,000" in done.stderr


@linux
@pytest.mark.driver
def test_footprint_shows_huge_pages():
    model = str(MODELS / "toy.pte")
    result = json.loads(run("footprint.py", model, "--json"))
    figures = next(iter(result.values()))["map"]["smaps"]
    assert figures["Anonymous"] >= figures["AnonHugePages"] >= figures["zeros"]
    assert figures["Anonymous"] > 1 << 20
    assert figures["gaps"] >= figures["gap count"] * 4096
    text = run("footprint.py", model)
    for title in ("anonymous", "in huge pages", "zero pages in them", "gaps below a huge page"):
        assert f"  {title} " in text
