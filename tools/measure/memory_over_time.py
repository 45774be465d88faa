"""How much memory do a load and a first inference take over time, each variant in a fresh process?

    python tools/measure/memory_over_time.py MODEL.pte [--plot CHART.png] [--budget 60MB]

Variants, the panels of the picture:

    eager      weights="copy", order="eager": everything is allocated, then weights go through
               staging, as runtimes usually do it
    lazy       weights="copy": weights first, through staging, then activations
    mapped     weights="auto": weights are read in place in the file where they lie as the kernels
               read them, others are written straight to their place
    streamed   weights="stream" under a budget (by default half of what "lazy" plans, or the
               smallest possible where that is more): the rest of the weights passes through a pool
               in every run

Sampled about every millisecond: RssAnon (with RssShmem) and RssFile of the process, from
/proc/PID/status by the parent; and the bytes allocated on the device, from the allocator by a
thread of the child. Both stamp their samples with the same monotonic clock. 0 ms is where the
driver has been started and the file's first bytes are still to be read, so that what a Python
process and a driver take by themselves is in every first sample; the table has it in a column of
its own. The file and the driver's shader cache are warm: the first process, which nobody watches,
sees to that.

On a driver that computes on the processor, device memory is memory of the process: part of anon.
Growth beyond the device's bytes is compiled code and what Python has for the program.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fresh
import numpy as np

import vkrt
from vkrt.memory.reader import DEFAULT_WINDOW
from vkrt.program import Description
from vkrt.report.columns import columns
from vkrt.report.memory import resident

PERIOD = 1e-3
VARIANTS: dict[str, dict[str, Any]] = {
    "eager": {"weights": "copy", "order": "eager"},
    "lazy": {"weights": "copy"},
    "mapped": {"weights": "auto"},
    "streamed": {"weights": "stream"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, metavar="MODEL.pte")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="a PNG")
    parser.add_argument("--budget", help="of the streamed variant, such as 60MB")
    parser.add_argument("--device", help="index or part of the name")
    options = parser.parse_args()
    warm = watch(options.model, VARIANTS["lazy"], options.device)
    variants = {name: dict(variant) for name, variant in VARIANTS.items()}
    variants["streamed"]["memory_budget"] = options.budget or max(
        warm.device_peak // 2,
        watch(options.model, {**VARIANTS["streamed"], "memory_budget": "smallest"},
              options.device).planned_peak)
    runs = {name: watch(options.model, settings, options.device)
            for name, settings in variants.items()}
    print(f"{options.model.name}, {options.model.stat().st_size / 1e6:.1f} MB, on {warm.name}\n")
    print("\n".join(table(runs)))
    if options.plot:
        print(f"\n{options.plot}: {draw(options.model, runs, options.plot):,} bytes")
    return 0


@dataclass
class Run:
    """What a process took; times in ms from the start of its load, memory in bytes.

    Attributes:
        name: of the device.
        settings: options of `vkrt.load`.
        device: (time, bytes allocated) wherever that changed.
        process: (time, anon, file), every sample.
        phases: (time, name) of the checkpoints of `MemoryReport`.
        device_peak, planned_peak: of the device.
        high: VmHWM at the end.
    """

    name: str
    settings: dict[str, Any]
    device: list[tuple[float, int]]
    process: list[tuple[float, int, int]]
    phases: list[tuple[float, str]]
    device_peak: int
    planned_peak: int
    high: int

    @property
    def what(self) -> str:
        """The options in words."""
        return ", ".join(f"{name}={value / 1e6:.1f} MB" if isinstance(value, int)
                         else f'{name}="{value}"' for name, value in self.settings.items())

    @property
    def end(self) -> float:
        """When the first inference was over."""
        return self.phases[-1][0]

    @property
    def loaded(self) -> float:
        """When the load was."""
        return next(at for at, name in self.phases if name == "before execute")

    @property
    def growth(self) -> int:
        """How far the resident bytes rose above those at the start."""
        totals = [anon + file for _, anon, file in self.process]
        return max(totals) - totals[0]


# In the child


def child(model: str, settings: dict[str, Any], device_name: str | None) -> dict[str, Any]:
    """Loads and runs a program in this process, sampling the device; returns its part of a `Run`,
    with times of the monotonic clock."""
    options = vkrt.LoadOptions(**settings)
    samples: list[tuple[float, int]] = []
    phases: list[tuple[float, str]] = []
    done = threading.Event()

    def sample(compute: Any) -> None:
        while not done.wait(PERIOD):
            samples.append((time.monotonic(), compute.statistics()["block_bytes"]))

    class Report(vkrt.MemoryReport):
        """Starts the sampling at the first checkpoint, before anything is allocated."""

        def phase(self, name: str, compute: Any) -> None:
            super().phase(name, compute)
            phases.append((time.monotonic(), name))
            samples.append((phases[-1][0], self.phases[-1].blocks))
            if len(phases) == 1:
                threading.Thread(target=sample, args=(compute,), daemon=True).start()

    # Python hands over to the sampling thread after 5 ms by itself.
    sys.setswitchinterval(PERIOD / 2)
    report = Report()
    with vkrt.Device.open(device_name) as device:
        print("ready", flush=True)
        sys.stdin.readline()
        start = time.monotonic()
        # What Program does, but with a report that looks on.
        description = Description(model)
        description.source.prefetch(0, DEFAULT_WINDOW)
        method = vkrt.Method(description.graph(description.method_names[0]),
                             [description.source], device, options=options, report=report)
        inputs = [np.zeros(i.sizes, i.dtype) for i in method.metadata.inputs]
        method.execute(inputs)
        time.sleep(0.01)
        done.set()
        high = resident().get("VmHWM", 0)
        method.close()
        description.close()
    return {"start": start, "samples": samples, "phases": phases, "high": high,
            "device_peak": report.measured_peak, "planned_peak": report.planned_peak,
            "name": device.info.name}


# In the parent


def watch(model: Path, settings: dict[str, Any], device: str | None) -> Run:
    """Runs a child and samples its memory meanwhile."""
    command = fresh.command(child, str(model), settings, device)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        samples: list[tuple[float, int, int]] = []
        done = threading.Event()
        sampler = threading.Thread(target=_sample, args=(process.pid, samples, done))
        sampler.start()
        process.stdin.write("go\n")
        process.stdin.flush()
        answer = process.stdout.read()
        done.set()
        sampler.join()
    if process.returncode:
        raise SystemExit(f"memory_over_time: {model.name} with {settings} failed with exit code "
                         f"{process.returncode}")
    found = json.loads(answer)

    def since(samples: Any) -> list[Any]:
        """Samples with times in ms from the start."""
        return [((at - found["start"]) * 1e3, *rest) for at, *rest in samples]

    phases, sizes = since(found["phases"]), since(samples)
    before = [s for s in sizes if s[0] <= 0][-1:]
    process = [*((0.0, *s[1:]) for s in before), *(s for s in sizes if 0 < s[0] <= phases[-1][0])]
    return Run(found["name"], settings, _changes(since(found["samples"])), process, phases,
               found["device_peak"], found["planned_peak"], found["high"])


def _sample(pid: int, samples: list[tuple[float, int, int]], done: threading.Event) -> None:
    """Notes a process's anonymous and file pages until it is done or gone."""
    with open(f"/proc/{pid}/status", "rb") as status:
        while not done.wait(PERIOD):
            try:
                text = os.pread(status.fileno(), 4096, 0)
            except ProcessLookupError:
                return
            sizes = {line.split(b":")[0]: int(line.split()[1]) * 1024
                     for line in text.splitlines() if line.startswith(b"Rss")}
            if sizes:  # not while it exits
                samples.append((time.monotonic(), sizes[b"RssAnon"] + sizes[b"RssShmem"],
                                sizes[b"RssFile"]))


def _changes(samples: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """The samples that differ from the one before, in the order of time, and the last."""
    samples = sorted(samples)
    kept = [(0.0, 0)]
    kept += [now for before, now in zip([kept[0], *samples], samples) if now[1] != before[1]]
    return kept


def table(runs: dict[str, Run]) -> list[str]:
    """The peaks in MB (10^6 bytes), of the process also how far above the start."""
    rows = [("variant", "device, planned", "device", "anon", "file", "RSS at the start",
             "RSS sampled", "VmHWM", "load ms", "first run ms")]
    for name, run in runs.items():
        _, anon, file = run.process[0]
        tops = (max(s[1] for s in run.process), max(s[2] for s in run.process),
                anon + file + run.growth)
        cells = [f"{top / 1e6:.1f} (+{(top - start) / 1e6:.1f})"
                 for top, start in zip(tops, (anon, file, anon + file))]
        rows.append((name, f"{run.planned_peak / 1e6:.2f}", f"{run.device_peak / 1e6:.2f}",
                     *cells[:2], f"{(anon + file) / 1e6:.1f}", cells[2], f"{run.high / 1e6:.1f}",
                     f"{run.loaded:.0f}", f"{run.end - run.loaded:.0f}"))
    return columns(rows)


def draw(model: Path, runs: dict[str, Run], path: Path) -> int:
    """A panel for each variant, with the same axes; returns the bytes of the PNG."""
    from plot import LIGHT_BLUE, LIGHT_ORANGE, ORANGE, Panel, Picture, rounded_up

    wide, high = 450, 265
    picture = Picture(2 * wide, 60 + 2 * high, f"{model.name}: memory while it is loaded and first "
                                               f"run, on {next(iter(runs.values())).name}")
    picture.legend([("allocated on the device", ORANGE), ("the process: anonymous", LIGHT_BLUE),
                    ("and on top pages of files", LIGHT_ORANGE)], 32)
    end = rounded_up(max(run.end for run in runs.values()))
    top = rounded_up(max(s[1] + s[2] for run in runs.values() for s in run.process) / 1e6)
    for number, (name, run) in enumerate(runs.items()):
        left, upper = number % 2 * wide, 60 + number // 2 * high
        panel = Panel(picture, (left, upper, left + wide, upper + high), x=(0, end), y=(0, top),
                      title=f"{name}: {run.what}", x_label="ms",
                      y_label=f"MB; peaks: {run.device_peak / 1e6:.1f} on the device, process "
                              f"+{run.growth / 1e6:.0f}")
        anon = [(at, n / 1e6) for at, n, _ in run.process]
        both = [(at, (n + file) / 1e6) for at, n, file in run.process]
        panel.area(anon, LIGHT_BLUE)
        panel.area(both, LIGHT_ORANGE, anon)
        panel.steps([*((at, n / 1e6) for at, n in run.device),
                     (run.end, run.device[-1][1] / 1e6)], ORANGE)
        panel.mark(run.loaded, "loaded")
    return picture.save(path)


if __name__ == "__main__":
    sys.exit(main())
