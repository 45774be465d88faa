"""Which networks of torchvision, timm and transformers run, how exactly, and in which memory?

    python tools/measure/architectures.py --torch PYTHON           all of them
    python tools/measure/architectures.py --torch PYTHON timm-levit_128s transformers-bert
    python tools/measure/architectures.py --show                   the table of what is there
    python tools/measure/architectures.py --write                  puts it into tools/README.md,
                                                                   beside the rows of others there

PYTHON is an interpreter with what `tools/export/architectures.py` needs, which exports the
networks. Each program is run in two processes of its own: the first finds no shader cache, the
second the one that the first has left. --folder (.cache/architectures) keeps programs, references
and a record of each network, so that another call goes on where one ended; --again runs the
programs that are there anew, and --anew exports them anew too. Exits 1 if a program gives wrong
results or its measured peak is not the planned one.

A result is right within a relative L2 error of 1e-5 against eager PyTorch in float32, or within
twice the error that PyTorch itself has against its results in float64.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import fresh
import numpy as np

import vkrt

ROOT = Path(__file__).resolve().parent.parent.parent
EXPORTER = ROOT / "tools" / "export" / "architectures.py"
README = ROOT / "tools" / "README.md"
BEGIN, END = "<!-- architectures -->\n", "<!-- end of architectures -->\n"
LIMIT = 600  # seconds of a process
MAX_ERROR = 1e-5

Record = dict[str, Any]


def run(program: str, reference: str) -> Record:
    """Loads and runs a program in this process: its figures, or what vkrt does not have
    ("refused"), or says else ("failed")."""
    start = time.perf_counter()
    try:
        loaded = vkrt.load(program)
    except vkrt.UnsupportedError as error:
        return {"refused": " ".join(str(error).split())}
    except vkrt.VkrtError as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    with loaded, np.load(reference) as data:
        infos = loaded.metadata().inputs
        inputs = [data[f"in{i}"].astype(info.dtype) for i, info in enumerate(infos)]
        outputs = loaded.run(*inputs)
        seconds = time.perf_counter() - start
        steps = loaded.load_method("forward").work.steps
        hosts = Counter(step.kernel for step in steps if hasattr(step, "kernel"))
        memory = loaded.memory
        return {"error": max(distance(y, data[f"out{i}"]) for i, y in enumerate(outputs)),
                "own": float(data["own"]), "hosts": dict(hosts), "steps": len(steps),
                "planned": memory.planned_peak, "measured": memory.measured_peak, "s": seconds}


def distance(result: np.ndarray, expected: np.ndarray) -> float:
    """|result - expected| / |expected|; infinite where shapes differ or a result is not finite."""
    if result.shape != expected.shape or not np.isfinite(result).all():
        return float("inf")
    wide = expected.astype(np.float64)
    return float(np.linalg.norm(result - wide) / (np.linalg.norm(wide) or 1.0))


def is_right(record: Record) -> bool:
    """Whether a program that ran gave the right results in the planned memory."""
    own = record["own"] if record["own"] == record["own"] else 0.0  # noqa: PLR0124 (NaN)
    return record["error"] <= max(MAX_ERROR, 2 * own) and record["planned"] == record["measured"]


class Exporter:
    """A process of the exporting interpreter, started with the first network."""

    def __init__(self, python: str | None, folder: Path):
        self.python, self.folder = python, folder
        self._process: subprocess.Popen[str] | None = None

    def export(self, name: str) -> Record:
        """Exports a network; "error" in the record if it cannot be."""
        if self.python is None:
            raise SystemExit(f"{name} is not exported: --torch names an interpreter that can")
        if self._process is None:
            self._process = subprocess.Popen(
                [self.python, str(EXPORTER), "-", "--out", str(self.folder)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        print(name, file=process.stdin, flush=True)
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.python} ended with code {process.wait()}; does it have what "
                             f"{EXPORTER.relative_to(ROOT)} needs?")
        return json.loads(line)

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


def examine(name: str, exporter: Exporter, options: argparse.Namespace) -> Record:
    """The record of a network: what is there, or made now."""
    folder: Path = options.folder
    path, program = folder / f"{name}.json", folder / f"{name}.pte"
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if options.anew or not (program.exists() or "export" in record):
        record = {}
        made = exporter.export(name)
        if "error" in made:
            record["export"] = made["error"]
    if "export" not in record and (options.again or "cold" not in record):
        record = {}
        with tempfile.TemporaryDirectory() as caches:
            for kind in ("cold", "warm"):
                try:
                    record[kind] = fresh.attempt(
                        run, str(program), str(program.with_suffix(".npz")), limit=LIMIT,
                        variables=fresh.with_caches(Path(caches)))
                except fresh.Failed as error:
                    record[kind] = {"failed": str(error)}
                if "error" not in record[kind]:
                    break
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return record


def row(name: str, record: Record) -> list[str]:
    """The cells of a network: name, result, error, PyTorch's, host kernels, peak, cold, warm."""
    if "export" in record:
        return [name, f"not exported: {record['export'][:120]}", *[""] * 6]
    cold = record["cold"]
    if "error" not in cold:
        text = cold.get("failed") or f"refused: {cold['refused'].partition('have: ')[2]}"
        return [name, text[:300], *[""] * 6]
    warm = record.get("warm", {})
    what = "right" if is_right(cold) else "WRONG"
    if cold["planned"] != cold["measured"]:
        what += f" (measured {cold['measured'] / 1e6:.3f})"
    hosts = ", ".join(f"{count} x {kernel.partition('::')[2]}"
                      for kernel, count in sorted(cold["hosts"].items()))
    times = [f"{1e3 * r['s']:.0f}" if "s" in r else "" for r in (cold, warm)]
    return [name, what, f"{cold['error']:.1e}", f"{cold['own']:.1e}", hosts or "none",
            f"{cold['planned'] / 1e6:.3f}", *times]


def table(rows: dict[str, list[str]]) -> list[str]:
    """Lines of Markdown: a sentence of sums, and the table; `rows` are the cells by network."""
    exported = {n: cells for n, cells in rows.items() if not cells[1].startswith("not exported")}
    ran = {n: cells for n, cells in exported.items() if cells[2]}
    right = [n for n, cells in ran.items() if cells[1] == "right"]
    alone = [n for n in right if ran[n][4] == "none"]
    heads = ("network", "result", "error", "PyTorch's", "host kernels", "peak MB", "cold ms",
             "warm ms")
    return [f"Of {len(rows)} networks {len(exported)} are exported, {len(ran)} of these run, "
            f"and {len(right)} ({100 * len(right) / max(len(exported), 1):.0f} %) are right; "
            f"{len(alone)} have no step on the host.", "",
            *(f"| {' | '.join(cells)} |"
              for cells in (heads, ["---"] * len(heads), *(rows[name] for name in sorted(rows))))]


def rows_in(text: str) -> dict[str, list[str]]:
    """The cells of the networks in a table, by network."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
             if line.startswith("| ")]
    return {cells[0]: cells for cells in found[2:]}


def write(rows: dict[str, list[str]]) -> None:
    """Puts rows into the table between its marks in the README of the tools; those of other
    networks stay there."""
    text = README.read_text("utf-8")
    head, begin, rest = text.partition(BEGIN)
    before, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{README} has no {BEGIN.strip()} .. {END.strip()}")
    lines = table({**rows_in(before), **rows})
    README.write_text(head + begin + "\n".join(lines) + "\n" + end + tail, "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="*", help="networks (default: all)")
    parser.add_argument("--torch", metavar="PYTHON", help="the interpreter that exports")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "architectures")
    parser.add_argument("--again", action="store_true", help="run what has been run before")
    parser.add_argument("--anew", action="store_true", help="export what has been exported before")
    parser.add_argument("--show", action="store_true", help="only print the table of the records")
    parser.add_argument("--write", action="store_true", help=f"put it into {README.name}")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.show or options.write):
        names = options.name or subprocess.run(
            [options.torch or "python3", str(EXPORTER), "--list"], check=True, text=True,
            stdout=subprocess.PIPE).stdout.split()
        with closing(Exporter(options.torch, options.folder)) as exporter:
            for name in names:
                cells = row(name, examine(name, exporter, options))
                print(" | ".join(filter(None, cells)), flush=True)
    records = {path.stem: json.loads(path.read_text("utf-8"))
               for path in sorted(options.folder.glob("*.json"))}
    rows = {name: row(name, record) for name, record in records.items()}
    if options.write:
        write(rows)
    else:
        print("\n".join(table(rows)[:None if options.show else 1]))
    return int(any("error" in r.get("cold", {}) and not is_right(r["cold"])
                   for r in records.values()))


if __name__ == "__main__":
    sys.exit(main())
