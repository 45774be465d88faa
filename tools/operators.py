"""Writes the list of supported operators into vkrt/ops/README.md, from the registry itself.

    python tools/operators.py --write    rewrites the lists
    python tools/operators.py --check    exits 1 if they are out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

README = Path(__file__).parent.parent / "vkrt" / "ops" / "README.md"
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->\n"


def listing() -> str:
    """The section's text."""
    from vkrt.ops.registry import kernels, operators

    on_device = [found.name for found in operators() if not found.is_host]
    on_host = [found.name for found in operators() if found.is_host]

    def names(all_names):
        return ", ".join(f"`{name.removesuffix('.default')}`" for name in all_names)

    return (f"{len(on_device)} operators in delegates (`.default` left out):\n\n"
            f"{names(on_device)}\n\n"
            f"{len(kernels())} kernels outside of delegates that run on the device as one of these "
            f"operators:\n\n{names(sorted(kernels()))}\n\n"
            f"{len(on_host)} kernels outside of delegates that run on the host, in numpy:\n\n"
            f"{names(on_host)}\n")


def main() -> int:
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__)
        return 2
    text = README.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    new = head + BEGIN + listing() + END + tail
    if "--check" in sys.argv:
        if new != text:
            print("vkrt/ops/README.md: the lists are out of date; run tools/operators.py --write")
        return int(new != text)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
