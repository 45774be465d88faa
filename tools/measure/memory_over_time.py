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

A thread of the process samples about every millisecond: RssAnon (with RssShmem) and RssFile from
/proc/self/status, and the bytes on the device from the allocator. 0 ms is where the driver has been
started and the file's first bytes are still to be read. A first process, which is not shown, warms
the file and the driver's shader cache. --plot needs matplotlib.

On a driver that computes on the processor, device memory is memory of the process: part of anon.
Growth beyond the device's bytes is compiled code and what Python has for the program.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fresh
import numpy as np

import vkrt
from vkrt.compiler.description import Description
from vkrt.memory.reader import DEFAULT_WINDOW
from vkrt.report.columns import columns
from vkrt.report.process import resident

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
        draw(options.model, runs, options.plot)
    return 0


@dataclass
class Run:
    """What a process took; times in ms from the start of its load, memory in bytes."""

    settings: dict[str, Any]  # options of `vkrt.load`
    name: str  # of the device
    samples: list[tuple[float, int, int, int]]  # time, on the device, anonymous pages, of files
    loaded: float
    end: float  # of the first inference
    device_peak: int
    planned_peak: int
    high: int  # VmHWM at the end

    @property
    def what(self) -> str:
        """The options in words."""
        return ", ".join(f"{name}={value / 1e6:.1f} MB" if isinstance(value, int)
                         else f'{name}="{value}"' for name, value in self.settings.items())

    @property
    def growth(self) -> int:
        """How far the resident bytes rose above those at the start."""
        totals = [anon + file for *_, anon, file in self.samples]
        return max(totals) - totals[0]


def watch(model: Path, settings: dict[str, Any], device: str | None) -> Run:
    """A load and a run in a process of its own."""
    return Run(settings, **fresh.measure(measure, str(model), settings, device))


def measure(model: str, settings: dict[str, Any], device_name: str | None) -> dict[str, Any]:
    """Loads and runs a program in this process while a thread samples it; the fields of a `Run`."""
    samples: list[tuple[float, int, int, int]] = []
    accounts: list[Any] = []
    done = threading.Event()

    def note() -> None:
        device = accounts[-1].statistics()["block_bytes"] if accounts else 0
        sizes = resident()
        samples.append((time.perf_counter(), device, sizes["RssAnon"] + sizes["RssShmem"],
                        sizes["RssFile"]))

    def sample() -> None:
        while not done.wait(PERIOD):
            note()

    class Report(vkrt.MemoryReport):
        """Finds whose bytes are on the device, and has a sample at every checkpoint."""

        def phase(self, name: str, account: Any) -> None:
            super().phase(name, account)
            accounts.append(account)
            note()

    # Python hands over to the sampling thread after 5 ms by itself.
    sys.setswitchinterval(PERIOD / 2)
    report = Report()
    sampler = threading.Thread(target=sample)
    with vkrt.Device.open(device_name) as device:
        start = time.perf_counter()
        note()
        sampler.start()
        try:
            # What Program does, but with a report that looks on.
            description = Description(model)
            description.source.prefetch(0, DEFAULT_WINDOW)
            method = vkrt.Method(description.graph(description.method_names[0]),
                                 [description.source], device,
                                 options=vkrt.LoadOptions(**settings), report=report)
            method.execute([np.zeros(i.sizes, i.dtype) for i in method.metadata.inputs])
        finally:
            done.set()
            sampler.join()
        method.close()
        description.close()
    times = {phase.name: (phase.at - start) * 1e3 for phase in report.phases}
    since = [((at - start) * 1e3, *sizes) for at, *sizes in sorted(samples)]
    return {"name": device.info.name, "samples": since, "loaded": times["before execute"],
            "end": times["end of execute"], "device_peak": report.measured_peak,
            "planned_peak": report.planned_peak, "high": resident().get("VmHWM", 0)}


def table(runs: dict[str, Run]) -> list[str]:
    """The peaks in MB (10^6 bytes), of the process also how far above the start."""
    rows = [("variant", "device, planned", "device", "anon", "file", "RSS at the start",
             "RSS sampled", "VmHWM", "load ms", "first run ms")]
    for name, run in runs.items():
        *_, anon, file = run.samples[0]
        tops = (max(s[2] for s in run.samples), max(s[3] for s in run.samples),
                anon + file + run.growth)
        cells = [f"{top / 1e6:.1f} (+{(top - start) / 1e6:.1f})"
                 for top, start in zip(tops, (anon, file, anon + file))]
        rows.append((name, f"{run.planned_peak / 1e6:.2f}", f"{run.device_peak / 1e6:.2f}",
                     *cells[:2], f"{(anon + file) / 1e6:.1f}", cells[2], f"{run.high / 1e6:.1f}",
                     f"{run.loaded:.0f}", f"{run.end - run.loaded:.0f}"))
    return columns(rows)


def draw(model: Path, runs: dict[str, Run], path: Path) -> None:
    """A panel for each variant, with the same axes."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 2, sharex=True, sharey=True, figsize=(9, 6),
                                     layout="constrained")
    figure.suptitle(f"{model.name}: memory while it is loaded and first run, on "
                    f"{next(iter(runs.values())).name}")
    for panel, (name, run) in zip(panels.flat, runs.items()):
        times, *sizes = zip(*run.samples)
        device, anon, file = ([nbytes / 1e6 for nbytes in each] for each in sizes)
        panel.stackplot(times, anon, file, colors=("#bfdcec", "#f6d6bf"),
                        labels=("the process: anonymous", "and on top pages of files"))
        panel.step(times, device, "#d55e00", where="post", label="allocated on the device")
        panel.axvline(run.loaded, color="grey", linewidth=1, label="loaded")
        panel.set_title(f"{name}: {run.what}\npeaks: {run.device_peak / 1e6:.1f} MB on the device, "
                        f"process +{run.growth / 1e6:.0f} MB", loc="left", fontsize="medium")
        panel.set(xlabel="ms", ylabel="MB")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    sys.exit(main())
