"""What the README says that code can check."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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
