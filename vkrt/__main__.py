"""python -m vkrt."""

import sys

from vkrt.cli import command

sys.exit(command())
