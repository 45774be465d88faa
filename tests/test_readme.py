"""What the README says that code can check."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from vkrt.program import Description

ROOT = Path(__file__).parent.parent


def test_list_of_operators_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "operators.py", "--check"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_named_files_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\b((?:tools|tests|vkrt|shaders)/[\w./-]+\w)", text))
    assert names
    missing = {name for name in names if not (ROOT / name).exists()}
    assert not missing


@pytest.mark.driver
def test_the_demos_figures_are_todays(device):
    if "llvmpipe" not in device.info.name:
        pytest.skip("the README has the figures of lavapipe")
    description = Description(ROOT / "tools" / "demo" / "realesr-animevideov3-fp16.pte")
    try:
        plan = description.predict("forward", device)[1]
    finally:
        description.close()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, value in (("weights", plan.weight_bytes), ("staging", plan.staging_bytes),
                        ("activations", plan.activation_bytes), ("planned peak", plan.peak_bytes),
                        ("measured peak", plan.peak_bytes)):
        assert f"    {name:<16}{value:>14,} B" in text, f"{name} is {value:,}"
