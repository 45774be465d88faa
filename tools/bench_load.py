"""Speed of loading a program file, cold and warm, by every way of reading it.

    python tools/bench_load.py MODEL.pte ...              whole loads, and the first inference
    python tools/bench_load.py --reader FILE ...          only the reader, into touched memory
    python tools/bench_load.py --strategies none,pread --rounds 7 --cold ...

Every measurement runs in a process of its own, and each round measures every strategy once, so
that noise hits all alike; the table has medians. The baseline is `none`: copies from the mapping
as page faults read it. Cold means that no page of the file is in the system's cache (dropped, and
checked); warm that all are.

A strategy is a name of `vkrt.memory.strategies` or `auto`. The reader alone also takes `direct`
(pread past the cache), and a number of threads, as in `pread:8`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source
from vkrt.memory.strategies import STRATEGIES

BASELINE = "none"
OF_LOADS = ",".join(reversed(STRATEGIES))
OF_READER = f"{OF_LOADS},direct"
TRANSFER = 4 << 20


def main() -> int:
    options = _options()
    if options.child:
        measure = measure_reader if options.reader else measure_load
        print(json.dumps(measure(options.files[0], options.child, options.weights)))
        return 0
    if not options.files:
        print("bench_load: no file given", file=sys.stderr)
        return 2
    strategies = (options.strategies or (OF_READER if options.reader else OF_LOADS)).split(",")
    if BASELINE not in strategies:
        strategies.insert(0, BASELINE)
    for path in options.files:
        results = measure_all(path, strategies, options)
        if options.json:
            print(json.dumps({path: results}, indent=2))
        else:
            print(table(path, results, options))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--reader", action="store_true", help="the reader alone; any file will do")
    parser.add_argument("--strategies",
                        help=f"default: {OF_LOADS}; of the reader {OF_READER}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weights", default="copy", help="copy or auto (for whole loads)")
    parser.add_argument("--cold", action="store_true", help="cold only")
    parser.add_argument("--warm", action="store_true", help="warm only")
    parser.add_argument("--json", action="store_true", help="every measurement")
    parser.add_argument("--child", metavar="STRATEGY", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure_all(path: str, strategies: list[str], options: argparse.Namespace,
                ) -> dict[str, dict[str, list[dict[str, float]]]]:
    """state -> strategy -> its measurements."""
    states = [s for s in ("cold", "warm") if getattr(options, s)] or ["cold", "warm"]
    results: dict[str, Any] = {state: {s: [] for s in strategies} for state in states}
    for state in states:
        for number in range(options.rounds):
            # Each round starts with another one: none always follows the same neighbour's leavings.
            turn = number % len(strategies)
            for strategy in strategies[turn:] + strategies[:turn]:
                drop(path) if state == "cold" else fill(path)
                results[state][strategy].append(_spawn(path, strategy, options))
    return results


def _spawn(path: str, strategy: str, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, path, "--child", strategy, "--weights", options.weights]
    command += ["--reader"] * options.reader
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"bench_load: {path} ({strategy}) failed with exit code "
                         f"{done.returncode}")
    return json.loads(done.stdout)


def drop(path: str) -> None:
    """Takes every page of a file out of the system's cache.

    Raises:
        SystemExit: pages stay.
    """
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    source = Source.open(path)
    try:
        for _ in range(20):
            source.drop_cache(0, source.nbytes)
            left = sum(source.resident(0, source.nbytes))
            if not left:
                return
            time.sleep(0.1)
    finally:
        source.close()
    raise SystemExit(f"bench_load: {left} pages of {path} cannot be dropped from the cache: is "
                     "something else using it, or is it on a file system in memory?")


def fill(path: str) -> None:
    """Brings every page of a file into the system's cache."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(TRANSFER)
        while file.readinto(buffer):
            pass


def measure_reader(path: str, strategy: str, weights: str) -> dict[str, float]:
    """Reads a file into memory that is there already; figures of this process."""
    import numpy as np

    name, _, threads = strategy.partition(":")
    direct = name == "direct"
    source = Source.open(path)
    target = np.ones(source.nbytes, np.uint8)
    address = target.ctypes.data
    start, used = time.perf_counter(), _cpu()
    with Reader([source], "pread" if direct else name, direct=direct,
                threads=int(threads) if threads else None) as reader:
        reader.run([Transfer(0, offset, min(TRANSFER, source.nbytes - offset), address + offset)
                    for offset in range(0, source.nbytes, TRANSFER)])
        notes = reader.notes
    seconds = time.perf_counter() - start
    used = _cpu() - used
    if notes:
        print(f"bench_load: {'; '.join(notes)}", file=sys.stderr)
    source.close()
    return {"bytes": source.nbytes, "load": seconds, "cpu": used, "peak": _peak()}


def measure_load(path: str, strategy: str, weights: str) -> dict[str, float]:
    """Loads a program and runs it once; figures of this process."""
    import numpy as np

    import vkrt

    options: dict[str, Any] = {"prefetch": strategy, "weights": weights}
    start, used = time.perf_counter(), _cpu()
    with vkrt.load(path, **options) as program:
        seconds, used = time.perf_counter() - start, _cpu() - used
        program.run(*[np.zeros(i.sizes, i.dtype) for i in program.metadata().inputs])
        first = time.perf_counter() - start
    return {"bytes": os.path.getsize(path), "load": seconds, "cpu": used, "first": first,
            "peak": _peak()}


def _cpu() -> float:
    """Seconds that this process has computed, for itself and inside of the system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak() -> int:
    """VmHWM in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(path: str, results: dict[str, Any], options: argparse.Namespace) -> str:
    """The medians as a markdown table; in brackets the fastest round."""
    first = not options.reader
    size = os.path.getsize(path)
    title = f"{Path(path).name}, {size:,} bytes, median of {options.rounds} (best)"
    if first:
        title += f", weights={options.weights}"
    heads = ["state", "strategy", "load ms", "GB/s", "CPU s", "VmHWM MB", f"vs {BASELINE}"]
    if first:
        heads.insert(3, "first inference ms")
    lines = [title, "", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for state, strategies in results.items():
        base = _median(strategies[BASELINE], "load")
        for strategy, rounds in strategies.items():
            load = _median(rounds, "load")
            best = min(r["load"] for r in rounds)
            cells = [state, strategy, f"{load * 1e3:.0f} ({best * 1e3:.0f})",
                     f"{size / load / 1e9:.2f}", f"{_median(rounds, 'cpu'):.3f}",
                     f"{_median(rounds, 'peak') / 1e6:.0f}", f"{base / load:.2f}x"]
            if first:
                cells.insert(3, f"{_median(rounds, 'first') * 1e3:.0f}")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _median(rounds: list[dict[str, float]], figure: str) -> float:
    return statistics.median(r[figure] for r in rounds)


if __name__ == "__main__":
    sys.exit(main())
