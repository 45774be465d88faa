"""The virtual environments of what is compared, made with pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent


class Unavailable(Exception):
    """Something cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Environment:
    """What pip is given, and the versions (major, minor) of Python that it works with."""

    requirements: tuple[str, ...]
    newest: tuple[int, int] | None = None


ENVIRONMENTS = {
    # PyTorch and ExecuTorch as the programs of this repository are made with; onnx is what
    # torch.onnx.export needs.
    "torch": Environment(("torch==2.13.0", "executorch==1.5.1", "onnx"), (3, 12)),
    # Without their requirements: pnnx asks for PyTorch, of which its program needs nothing.
    "ncnn": Environment(("--no-deps", "ncnn", "pnnx", "numpy")),
    "onnxruntime": Environment(("onnxruntime", "numpy")),
}
CHECK = """
import ensurepip, sys, venv
sys.exit(not (3, 10) <= sys.version_info[:2] <= {newest})
"""


def last_line(text: str) -> str:
    """The last line that says something."""
    return text.strip().rpartition("\n")[2]


def run(command: list[str], what: str, **options: object) -> str:
    """What a command prints; `Unavailable` with the last line of its errors if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              errors="replace", check=False, **options)  # type: ignore[call-overload]
    except OSError as error:
        raise Unavailable(f"{what}: {error}") from None
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{what}: no end after {error.timeout:.0f} s") from None
    if done.returncode < 0:
        raise Unavailable(f"{what}: ended by signal {-done.returncode}")
    if done.returncode:
        raise Unavailable(f"{what}: {last_line(done.stderr or done.stdout)[:200]}")
    return str(done.stdout)


def find_python(newest: tuple[int, int] | None) -> str:
    """A Python from 3.10 to `newest`, with venv."""
    check = CHECK.format(newest=newest or (99, 0))
    for name in (sys.executable, "python3", "/usr/bin/python3",
                 *(f"python3.{minor}" for minor in (13, 12, 11, 10))):
        path = shutil.which(name)
        if path and not subprocess.run([path, "-c", check], capture_output=True).returncode:
            return path
    raise Unavailable("no Python with venv from 3.10"
                      + (f" to {newest[0]}.{newest[1]}" if newest else " on"))


def make(name: str, folder: Path, base: str | None = None) -> str:
    """The interpreter of one of `ENVIRONMENTS`, which is made in a folder if it is not there: of
    the packages of another interpreter, `base`, only what it lacks is installed."""
    wanted = ENVIRONMENTS[name]
    place = folder / name
    python, stamp = place / "bin" / "python", place / "made-of"
    content = "\n".join((*wanted.requirements, base or ""))
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == content:
        return str(python)
    print(f"installing {' '.join(wanted.requirements)}", file=sys.stderr, flush=True)
    run([base or find_python(wanted.newest), "-m", "venv", "--clear", str(place)], "venv")
    if base:
        ask = "import sysconfig; print(sysconfig.get_path('{}'))"
        found = {run([base, "-c", ask.format(kind)], base) for kind in ("purelib", "platlib")}
        target = run([str(python), "-c", ask.format("purelib")], str(python)).strip()
        Path(target, "base.pth").write_text("".join(sorted(found)), encoding="utf-8")
    run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check",
         *wanted.requirements], "pip")
    stamp.write_text(content, encoding="utf-8")
    return str(python)


def vkrt() -> str:
    """The interpreter with vkrt: this one if it has it, else that of .venv, which is made."""
    python = str(ROOT / ".venv" / "bin" / "python")
    for candidate in (sys.executable, python):
        if shutil.which(candidate) and not subprocess.run(
                [candidate, "-I", "-c", "import vkrt"], cwd=ROOT / "tools",
                capture_output=True).returncode:
            return candidate
    print("installing vkrt", file=sys.stderr, flush=True)
    run([str(ROOT / "tools" / "setup-python")], "tools/setup-python")
    return python


def build(source: Path, folder: Path, python: str) -> str:
    """The program of a host in C that links the library of an interpreter's vkrt, built below a
    folder."""
    flags = run([python, "-I", "-m", "vkrt.capi.config", "--cflags", "--libs"],
                "vkrt-config").split()
    folder.mkdir(parents=True, exist_ok=True)
    host = folder / source.stem
    run(["cc", "-O2", str(source), "-o", str(host), *flags], "cc")
    return str(host)
