"""What huge pages do for tensors of odd sizes in host memory, by policy of the allocator.

    python tools/bench_hugepages.py                    384 MB in tensors of 0.5 to 1.5 MB
    python tools/bench_hugepages.py MODEL.pte ...      sizes of the weights of programs
    python tools/bench_hugepages.py --fill each        each is filled before the next is allocated

Every measurement is made in a fresh process; processes of the policies take turns, so that what
else the machine does falls on all of them. Prints a table of medians for the README, each with the
lowest and the highest value, and the system's setting for huge pages, without which none come.

The first touch is measured twice: a virtual machine whose host takes back free memory (a balloon
with free page reporting) faults on the host too, unless the memory was in use a moment ago.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vkrt import pte
from vkrt.memory.host_arena import HostArena, HostBlock
from vkrt.memory.smaps import huge_pages

POLICIES = ("off", "aligned", "on")
LINE = 64
READS, BATCH, STEPS = 1 << 21, 4096, 1 << 19
MOST_TENSORS = 100_000
# Name, unit, decimals; in the order of the table.
FIGURES = (
    ("copy", "memcpy, GB/s", 2),
    ("gather", "random reads that overlap, ns", 1),
    ("chase", "random reads that wait for each other, ns", 1),
    ("stream", "streaming sum, GB/s", 2),
    ("touch", "first touch, ms", 1),
    ("touch again", "first touch of memory just released, ms", 1),
    ("release", "release, ms", 1),
    ("faults", "page faults of the first touch", 0),
    ("used", "bytes of tensors, MB", 1),
    ("resident", "resident, MB", 1),
    ("huge", "of it in huge pages, MB", 1),
    ("gaps", "gaps between tensors, MB", 1),
    ("rounding", "lost to rounding, MB", 3),
    ("tables", "page tables, kB", 0),
)


def main() -> int:
    options = _options()
    if options.child:
        print(json.dumps(measure(options.child, json.load(sys.stdin), options)))
        return 0
    setting, huge = huge_pages()
    print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} cores, huge pages "
          f"of {huge / 1e6:.2f} MB: {setting}; {options.rounds} rounds, filled "
          f"{'one by one' if options.fill == 'each' else 'when all are allocated'}\n")
    for model in options.models or [None]:
        wanted = options.mb * 1_000_000
        sizes = model_sizes(model, wanted) if model else odd_sizes(wanted)
        title = Path(model).name if model else "odd sizes"
        print(f"{title}: {len(sizes)} tensors of {min(sizes):,} to {max(sizes):,} bytes\n")
        print(table(rounds(sizes, options)) + "\n", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="programs; weights are taken several times, "
                                                  "until they are as much as --mb")
    parser.add_argument("--mb", type=int, default=384, help="bytes of all tensors, in 10^6")
    parser.add_argument("--rounds", type=int, default=7, help="processes per policy")
    parser.add_argument("--fill", choices=("after", "each"), default="after",
                        help="when tensors are written first: after all are allocated, or each "
                             "before the next is allocated")
    parser.add_argument("--child", choices=POLICIES, help=argparse.SUPPRESS)
    return parser.parse_args()


def odd_sizes(nbytes: int) -> list[int]:
    """Sizes of 0.5 to 1.5 MB that make up `nbytes`; always the same."""
    pick, sizes = random.Random(1), []
    while sum(sizes) < nbytes:
        sizes.append(pick.randrange(500_000, 1_500_000))
    return sizes


def model_sizes(path: str, nbytes: int) -> list[int]:
    """Bytes of each constant in a program's delegates, in the order of the file.

    They are repeated until they make up `nbytes`.
    """
    data = Path(path).read_bytes()
    program = pte.read_program(data)
    spans = {constant.span for plan in program.plans for delegate in plan.delegates
             for constant in pte.read_delegate(data, delegate.span, program.named_data).constants
             if not constant.source}
    sizes = [span.nbytes for span in sorted(spans, key=lambda s: s.offset) if span.nbytes]
    times = -(-nbytes // max(sum(sizes), 1))
    if times * len(sizes) > MOST_TENSORS or not sizes:
        raise SystemExit(f"bench_hugepages: {path} has weights of {sum(sizes):,} bytes in itself, "
                         f"too small a part of {nbytes:,}: give fewer with --mb")
    return sizes * times


def rounds(sizes: list[int], options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Results of all rounds by policy. The policy that begins changes from round to round."""
    results: dict[str, list[dict[str, float]]] = {policy: [] for policy in POLICIES}
    for i in range(options.rounds):
        first = i % len(POLICIES)
        for policy in POLICIES[first:] + POLICIES[:first]:
            command = [sys.executable, __file__, "--child", policy, "--fill", options.fill]
            done = subprocess.run(command, input=json.dumps(sizes).encode(), check=True,
                                  stdout=subprocess.PIPE)
            results[policy].append(json.loads(done.stdout))
    return results


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: median (lowest to highest, where they differ)."""
    lines = ["| | " + " | ".join(results) + " |", "| --- |" + " --- |" * len(results)]
    for name, title, decimals in FIGURES:
        cells = []
        for found in results.values():
            values = sorted(r[name] for r in found)
            middle, low, high = (f"{v:,.{decimals}f}" for v in (
                statistics.median(values), values[0], values[-1]))
            cells.append(middle if low == high else f"{middle} ({low} to {high})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(policy: str, sizes: list[int], options: argparse.Namespace) -> dict[str, Any]:
    """All figures for one policy, in this process."""
    import resource

    def faults() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    arena = HostArena(policy)
    tables, before = page_tables(), faults()
    blocks, seconds = filled(arena, sizes, options.fill)
    result = {"touch": seconds * 1e3, "faults": faults() - before,
              "tables": (page_tables() - tables) / 1e3}
    figures = arena.statistics()
    result.update({k: figures[k] / 1e6 for k in ("used", "resident", "huge", "gaps")})
    result["rounding"] = result["resident"] - result["used"]
    result["stream"] = sum(sizes) / typical(lambda: stream(blocks)) / 1e9
    result["copy"] = copied(blocks) / typical(lambda: copy(blocks)) / 1e9
    result["gather"] = gather(blocks) * 1e9
    result["chase"] = chase(blocks) * 1e9
    arena.close()
    result["release"] = timed(lambda: [b.close() for b in blocks]) * 1e3
    with HostArena(policy) as arena:
        blocks, seconds = filled(arena, sizes, options.fill)
    result["touch again"] = seconds * 1e3
    return result


def filled(arena: HostArena, sizes: list[int], when: str) -> tuple[list[HostBlock], float]:
    """Tensors that were written once, and the seconds that the writing took."""
    blocks: list[HostBlock] = []
    seconds = 0.0

    def write(block: HostBlock) -> None:
        ctypes.memset(block.address, len(blocks) % 255 + 1, block.nbytes)

    for nbytes in sizes:
        blocks.append(arena.allocate(nbytes))
        if when == "each":
            seconds += timed(lambda: write(blocks[-1]))
    if when == "after":
        seconds = timed(lambda: [write(block) for block in blocks])
    return blocks, seconds


def page_tables() -> int:
    """Bytes of this process's page tables."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(x.split()[1]) * 1024 for x in status if x.startswith("VmPTE:"))


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def typical(work: Callable[[], object]) -> float:
    """Median seconds of five runs after one."""
    work()
    return statistics.median(timed(work) for _ in range(5))


def pairs(blocks: list[HostBlock]) -> list[tuple[HostBlock, HostBlock]]:
    """Every tensor with one far from it."""
    half = len(blocks) // 2
    return list(zip(blocks[:half], blocks[half:]))


def copied(blocks: list[HostBlock]) -> int:
    """Bytes that `copy` copies."""
    return sum(min(a.nbytes, b.nbytes) for a, b in pairs(blocks))


def copy(blocks: list[HostBlock]) -> None:
    """memcpy from the first half of the tensors to the second."""
    for source, target in pairs(blocks):
        ctypes.memmove(target.address, source.address, min(source.nbytes, target.nbytes))


def stream(blocks: list[HostBlock]) -> int:
    """Reads everything once in the order of allocation."""
    return sum(int(np.frombuffer(b, np.uint64, b.nbytes // 8).sum()) for b in blocks)


def words_of(blocks: list[HostBlock]) -> tuple[np.ndarray, np.ndarray]:
    """One array over all tensors, and where in it their lines begin, shuffled.

    The array spans what lies between the tensors too, which is never touched.
    """
    base = min(b.address for b in blocks)
    count = (max(b.address + b.nbytes for b in blocks) - base) // 8
    words = np.frombuffer((ctypes.c_char * (count * 8)).from_address(base), np.uint64)
    lines = [(b.address - base) // LINE + np.arange(b.nbytes // LINE) for b in blocks]
    places = np.random.default_rng(2).permutation(np.concatenate(lines))
    return words, places * (LINE // 8)


def gather(blocks: list[HostBlock]) -> float:
    """Seconds per word, each from another line. The CPU overlaps reads as none needs another.

    The words go to a buffer that stays in the cache.
    """
    words, places = words_of(blocks)
    batches = np.resize(places, READS).reshape(-1, BATCH)
    out = np.empty(BATCH, words.dtype)
    return typical(lambda: [np.take(words, row, out=out, mode="clip") for row in batches]) / READS


def chase(blocks: list[HostBlock]) -> float:
    """Seconds per line where each says which is the next; overwrites the tensors.

    The interpreter's own time is that of as many steps through a few lines, and taken off: what
    remains is the time of a read beyond one from the cache.
    """
    words, places = words_of(blocks)

    def follow(path: np.ndarray) -> float:
        words[path] = np.roll(path, -1)
        view, at = memoryview(words), int(path[0])

        def walk() -> None:
            nonlocal at
            for _ in range(STEPS):
                at = view[at]

        return typical(walk) / STEPS

    return follow(places) - follow(places[:16])


if __name__ == "__main__":
    sys.exit(main())
