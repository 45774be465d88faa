"""Puts what several archives hold into one, without debug information, which is ten times as large
as the code: `archive.py ARCHIVE PART.. --ar COMMAND.. --strip COMMAND..`"""

from __future__ import annotations

import argparse
import subprocess


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive")
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--ar", nargs="+", required=True)
    parser.add_argument("--strip", nargs="+", required=True)
    args = parser.parse_args()
    script = [f"create {args.archive}", *(f"addlib {part}" for part in args.parts), "save", "end"]
    subprocess.run([*args.ar, "-M"], input="\n".join(script) + "\n", text=True, check=True)
    subprocess.run([*args.strip, "-g", args.archive], check=True)


if __name__ == "__main__":
    main()
