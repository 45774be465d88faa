"""Lets tests and samples import the harness and the references beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
