"""Writes the list of supported operators into vkrt/ops/README.md, from the registry itself, and
vkrt/ops/families.py, which says in which module each of them is declared.

    python tools/operators.py --write    rewrites the lists
    python tools/operators.py --check    exits 1 if they are out of date
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from vkrt.graph.graph import MADE
from vkrt.ops.registry import declaring, kernels, operators, supported

README = Path(__file__).parent.parent / "vkrt" / "ops" / "README.md"
FAMILIES = README.with_name("families.py")
HEAD = '''\
"""Which modules of this package declare which operators and portable kernels. Those of the device
are listed without namespace and overload, where one module has all of that name.

Written by `tools/operators.py --write`, for `vkrt.ops.registry`.
"""
'''
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->\n"


def listing() -> str:
    """The section's text."""
    on_device = supported()
    on_host = [found.name for found in operators()
               if found.is_host and not found.name.startswith(MADE)]

    def names(all_names):
        return ", ".join(f"`{name.removesuffix('.default')}`" for name in all_names)

    return (f"{len(on_device)} operators in delegates (`.default` left out):\n\n"
            f"{names(on_device)}\n\n"
            f"{len(kernels())} kernels outside of delegates that run on the device as one of these "
            f"operators:\n\n{names(sorted(kernels()))}\n\n"
            f"{len(on_host)} kernels outside of delegates that run on the host, in numpy:\n\n"
            f"{names(on_host)}\n")


def families() -> str:
    """The module's text."""
    text = HEAD
    for name, modules in declaring().items():
        text += f"\n{name} = {{\n"
        for module, names in modules.items():
            lines = textwrap.wrap(" ".join(names), 86, break_long_words=False,
                                  break_on_hyphens=False)
            words = "\n".join([f'        "{line} "' for line in lines])
            in_one_line = f'    "{module}": "{lines[0]}",\n'
            text += (in_one_line if len(lines) == 1 and len(in_one_line) <= 100 else
                     f'    "{module}": (\n{words}),\n')
        text += "}\n"
    return text


def main() -> int:
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__)
        return 2
    head, rest = README.read_text(encoding="utf-8").split(BEGIN)
    texts = {README: head + BEGIN + listing() + END + rest.split(END)[1], FAMILIES: families()}
    if "--check" in sys.argv:
        differs = any(path.read_text(encoding="utf-8") != text for path, text in texts.items())
        if differs:
            print("vkrt/ops/README.md or families.py: the lists are out of date; run "
                  "tools/operators.py --write")
        return int(differs)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
