#!/usr/bin/env python3
"""Where the time of a host in C goes, from the start of its process to the first result.

    startup.py MODEL.pte [--times 15] [--home FOLDER]

Compiles startup.c beside this file, runs it again and again with warm caches, and prints the
median of each part: ms by the clock, ms of all processors, and what the process holds at its end.
The last lines compare the whole with what no host can do without: the driver's start, the
pipelines, weights, and the first run. FOLDER is an environment with vkrt, by default the one that
runs this. An editable install takes longer than others: its modules are looked for in two places.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers.environments import build

HERE = Path(__file__).resolve().parent
# What a program of C and Vulkan would have to do as well
NEEDED = ("start the driver", "weights", "allocate and record", "first run")
PIPELINES = "pipelines"


def run(host: str, model: str, home: str) -> dict[str, tuple[float, float, int]]:
    """One run: what was done, ms by the clock, ms of processors, and KiB at its end."""
    # The clock is the system's, and the same in every process.
    done = subprocess.run([host, model, str(time.clock_gettime_ns(time.CLOCK_MONOTONIC))],
                          env={**os.environ, "VKRT_HOME": home}, text=True, check=True,
                          stdout=subprocess.PIPE)
    parts: dict[str, tuple[float, float, int]] = {}
    clock = processors = 0
    for line in done.stdout.splitlines():
        what, *figures = line.split("\t")
        now, used, kilobytes = map(int, figures)
        before = parts.get(what, (0.0, 0.0, 0))
        parts[what] = (before[0] + (now - clock) / 1e6, before[1] + (used - processors) / 1e6,
                       kilobytes)
        clock, processors = now, used
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--home", default=sys.prefix)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        host = build(HERE / "startup.c", Path(folder), str(Path(options.home, "bin", "python")))
        run(host, options.model, options.home)  # fills the caches
        runs = [run(host, options.model, options.home) for _ in range(options.times)]

    def median(names: object, which: int) -> float:
        return statistics.median(sum(parts[name][which] for name in names) for parts in runs)

    print(f"{'':32}{'ms':>8}{'CPU ms':>8}{'MB':>8}")
    for name in runs[0]:
        print(f"{name:32}{median([name], 0):8.1f}{median([name], 1):8.1f}"
              f"{median([name], 2) * 1024 / 1e6:8.1f}")
    whole = [name for name in runs[0] if name != "second run"]
    print(f"{'to the first result':32}{median(whole, 0):8.1f}{median(whole, 1):8.1f}")
    for which, needed in (("driver, weights, first run", NEEDED),
                          ("the same and pipelines", (*NEEDED, PIPELINES))):
        figures = [statistics.median(sum(parts[name][kind] for name in whole)
                                     / sum(parts[name][kind] for name in needed)
                                     for parts in runs) for kind in (0, 1)]
        print(f"{which:32}{median(needed, 0):8.1f}{median(needed, 1):8.1f}"
              f"   the whole is {figures[0]:.2f} times that, of CPU time {figures[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
