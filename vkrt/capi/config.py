"""The command `vkrt-config`: what a compiler needs to build a host."""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path

LIBRARY = "libvkrt.so.0"
ARCHIVE = "libvkrt.a"


def folder() -> Path:
    """Where the header, the library and the file for pkg-config are."""
    return Path(str(files("vkrt.capi").joinpath(LIBRARY))).parent


def main(argv: list[str] | None = None) -> int:
    """Prints what is asked for, in one line."""
    parser = argparse.ArgumentParser(prog="vkrt-config", description="Flags for hosts in C.")
    parser.add_argument("--cflags", action="store_true", help="for compiling")
    parser.add_argument("--libs", action="store_true",
                        help="for linking; the host then finds the library where it is now")
    parser.add_argument("--static", action="store_true",
                        help="for linking with the archive, which is then a part of the host")
    parser.add_argument("--folder", action="store_true",
                        help="of vkrt.h, the library, vkrt.pc (for PKG_CONFIG_PATH) and "
                             "vkrt-config.cmake (for vkrt_DIR)")
    options = parser.parse_args(argv)
    if not (options.cflags or options.libs or options.static or options.folder):
        parser.error("expected --cflags, --libs, --static or --folder")
    here = folder()
    words = [f"-I{here}"] if options.cflags else []
    words += [f"-L{here}", "-lvkrt", f"-Wl,-rpath,{here}"] if options.libs else []
    words += [str(here / ARCHIVE), "-ldl", "-lpthread"] if options.static else []
    print(*words, *([here] if options.folder else []))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
