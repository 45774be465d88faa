"""The tools that show what memory does: figures that are there and add up, no times."""

from __future__ import annotations

import json
import subprocess
import sys

import footprint
import pytest
from support import MODELS


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, footprint.__file__, *arguments], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads smaps")
@pytest.mark.driver
def test_footprint_shows_huge_pages():
    model = str(MODELS / "toy.pte")
    result = json.loads(run(model, "--json"))
    figures = next(iter(result.values()))["map"]["smaps"]
    assert figures["Anonymous"] >= figures["AnonHugePages"]
    assert figures["Anonymous"] > 1 << 20
    assert figures["model"] > 0  # of the file that is mapped
    text = run(model)
    for title in ("anonymous", "in huge pages", "the model's file, resident"):
        assert f"  {title} " in text
