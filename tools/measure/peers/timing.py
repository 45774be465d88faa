"""What all runners do: they load a model, run it, and print the figures as one line of JSON.

    PYTHON run_PEER.py MODEL INPUT OUTPUT INFERENCES THREADS SIZE...

INPUT is a file of float32 numbers in the shape SIZE...; the result of the last run is written to
OUTPUT in the same way. What is imported before is not part of any figure.
"""

import gc
import json
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np


def memory(figure):
    """The process's VmRSS or VmHWM in bytes; None where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) << 10 for line in lines
                        if line.startswith(figure + ":"))
    except (OSError, StopIteration):
        return None


def now():
    """Milliseconds by the clock, and of all threads' CPU time."""
    return time.perf_counter() * 1e3, time.process_time() * 1e3


def measure(load, facts):
    """Loads and runs the model of the command line.

    Args:
        load: from the model's path and a number of threads to a function from input to output.
        facts: what is printed with the figures: the version, the device. `load` may add to it.
    """
    path, source, target, inferences, threads, *shape = sys.argv[1:]
    x = np.fromfile(source, np.float32).reshape([int(size) for size in shape])
    gc.collect()
    # The high-water mark begins at what is resident now, where the system can do that.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = memory("VmRSS")
    start = now()
    run = load(path, int(threads))
    loaded = now()
    y = run(x)
    first = now()
    peak = memory("VmHWM")
    times = []
    for _ in range(int(inferences)):
        begin = now()
        y = run(x)
        times.append([b - a for a, b in zip(begin, now())])
    np.ascontiguousarray(y, np.float32).tofile(target)
    print(json.dumps({
        **facts,
        "load_ms": loaded[0] - start[0], "load_cpu_ms": loaded[1] - start[1],
        "first_ms": first[0] - loaded[0], "first_cpu_ms": first[1] - loaded[1],
        "run_ms": [wall for wall, _ in times], "run_cpu_ms": [cpu for _, cpu in times],
        "memory": None if peak is None else peak - before,
    }))
