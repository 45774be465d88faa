"""The tools that show what memory does: figures that are there and add up, no times."""

import sys

import footprint
import pytest
from support import MODELS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads smaps")
@pytest.mark.driver
def test_footprint_shows_huge_pages():
    result = footprint.measure(str(MODELS / "toy.pte"), "map")
    figures = result["smaps"]
    assert figures["Anonymous"] >= figures["AnonHugePages"]
    assert figures["Anonymous"] > 1 << 20
    assert figures["model"] > 0  # of the file that is mapped
    text = "\n".join(footprint._table({"map": result}))
    for title in ("anonymous", "in huge pages", "the model's file, resident"):
        assert f"  {title} " in text
