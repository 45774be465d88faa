"""How long do loads take, cold and warm, by every strategy of reading the file?

    python tools/measure/loading.py MODEL.pte ...            whole loads, and the first run
    python tools/measure/loading.py --reader FILE ...        only the reader, into touched memory
    python tools/measure/loading.py --prefetch none,pread --rounds 7 --state cold ...

Every measurement runs in a process of its own, and each round measures every strategy once, so that
noise hits all alike; the table has medians, in brackets the fastest round. Strategies are those of
`prefetch=` of vkrt.load; all are compared with "none", copies from the mapping as page faults read
it. Cold means that no page of the file is in the system's cache (dropped, and checked); warm that
all are.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from pathlib import Path

import fresh
import numpy as np

import vkrt
from vkrt.cli.bench import drop_from_cache, sample_inputs
from vkrt.memory.reader import Reader, Transfer
from vkrt.memory.source import Source
from vkrt.memory.strategies import STRATEGIES
from vkrt.report.columns import columns

BASELINE = "none"
STRATEGY_NAMES = ",".join(reversed(STRATEGIES))
TRANSFER = 4 << 20

# Figures of one measurement
Figures = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--reader", action="store_true", help="the reader alone; any file will do")
    parser.add_argument("--prefetch", default=STRATEGY_NAMES, help=f"default: {STRATEGY_NAMES}")
    parser.add_argument("--weights", default="copy", help="of whole loads (default: copy)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--state", default="cold,warm", help="default: cold,warm")
    options = parser.parse_args()
    strategies = list(dict.fromkeys([BASELINE, *options.prefetch.split(",")]))
    for path in options.files:
        rows = []
        for state in options.state.split(","):
            results: dict[str, list[Figures]] = {strategy: [] for strategy in strategies}
            for number in range(options.rounds):
                # Each round starts with another one: none always follows the same neighbour.
                turn = number % len(strategies)
                for strategy in strategies[turn:] + strategies[:turn]:
                    bring_to(state, path)
                    results[strategy].append(fresh.measure(read, path, strategy) if options.reader
                                        else fresh.measure(load, path, strategy, options.weights))
            rows += rows_of(state, results, os.path.getsize(path))
        what = "the reader alone" if options.reader else f"weights={options.weights}"
        print(f"{Path(path).name}, {os.path.getsize(path):,} bytes, {what}, medians of "
              f"{options.rounds} (fastest)\n")
        heads = ("state", "prefetch", "load ms", "with first run ms", "GB/s", "CPU s", "VmHWM MB",
                 f"vs {BASELINE}")
        print("\n".join([*columns([heads, *rows], left=(0, 1)), ""]), flush=True)
    return 0


def bring_to(state: str, path: str) -> None:
    """Takes every page of a file out of the system's cache, or brings all into it."""
    if state == "warm":
        with open(path, "rb", buffering=0) as file:
            buffer = bytearray(TRANSFER)
            while file.readinto(buffer):
                pass
    elif why := drop_from_cache(path):
        raise SystemExit(f"loading: {path}: {why}")


def read(path: str, strategy: str) -> Figures:
    """Reads a file into memory that is there already; figures of this process."""
    source = Source.open(path)
    target = np.ones(source.nbytes, np.uint8)
    address = target.ctypes.data
    start, cpu = time.perf_counter(), time.process_time()
    with Reader([source], strategy) as reader:
        reader.run([Transfer(0, offset, min(TRANSFER, source.nbytes - offset), address + offset)
                    for offset in range(0, source.nbytes, TRANSFER)])
    return {"load": time.perf_counter() - start, "cpu": time.process_time() - cpu, "peak": _peak()}


def load(path: str, strategy: str, weights: str) -> Figures:
    """Loads a program and runs it once; figures of this process."""
    start, cpu = time.perf_counter(), time.process_time()
    with vkrt.load(path, prefetch=strategy, weights=weights) as program:
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        program.run(*sample_inputs(program.metadata()))
        first = time.perf_counter() - start
    return {"load": seconds, "cpu": cpu, "first": first, "peak": _peak()}


def _peak() -> int:
    """VmHWM in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rows_of(state: str, results: dict[str, list[Figures]], nbytes: int) -> list[tuple[str, ...]]:
    """The table's rows of a state."""
    def median(strategy: str, figure: str) -> float:
        return statistics.median(one.get(figure, 0.0) for one in results[strategy])

    return [(state, strategy, f"{median(strategy, 'load') * 1e3:.0f} "
             f"({min(one['load'] for one in results[strategy]) * 1e3:.0f})",
             f"{median(strategy, 'first') * 1e3:.0f}" if "first" in results[strategy][0] else "-",
             f"{nbytes / median(strategy, 'load') / 1e9:.2f}", f"{median(strategy, 'cpu'):.3f}",
             f"{median(strategy, 'peak') / 1e6:.0f}",
             f"{median(BASELINE, 'load') / median(strategy, 'load'):.2f}x") for strategy in results]


if __name__ == "__main__":
    sys.exit(main())
