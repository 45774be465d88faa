"""python -m vkrt."""

import sys

from vkrt.cli.main import main

sys.exit(main())
