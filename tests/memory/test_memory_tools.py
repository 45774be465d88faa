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
