"""A table of devices and programs: what compiling takes, what spills, and the modelled times.

Beside networks of floats stands what the same model makes of ncnn's kernels for them (ncnn
1.0.20261020, its options for 16 bits off, models by pnnx): they are measured elsewhere, because its
shaders call functions and are made when a program is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compilers.cost import HARDWARE, costs_of
from compilers.drivers import capture
from compilers.statistics import summary_of

# One of each generation: Adreno 6xx and 7xx, Radeon GCN and RDNA 2, Intel Gen9, Gen12 and Xe, Mali
# Bifrost and Valhall, VideoCore VI and VII
DEVICES = ("adreno-630", "adreno-740", "radeon-polaris10", "radeon-navi21", "intel-skl",
           "intel-tgl", "intel-dg2", "mali-g52-vk1.1", "mali-g610", "raspberry-pi-4",
           "raspberry-pi-5")
# Beginning of a program's name -> device -> milliseconds of ncnn by this model; None: not measured
_MEASURED = ("adreno-630", "adreno-740", "mali-g610", "intel-tgl", "radeon-polaris10",
             "raspberry-pi-5", "raspberry-pi-4")
NCNN = {name: dict(zip(_MEASURED, times, strict=True)) for name, times in {
    "efficientnet-lite0": (35.9, 3.88, 6.18, 5.04, 1.11, 67.9, 182),
    "mobilenet_v2-": (24.7, 3.01, 4.75, 4.30, 0.87, 48.8, 132),
    "resnet18-": (64.3, 7.01, 13.7, 7.28, 1.06, 129, 344),
    "realesr-animevideov3": (33.9, 3.46, 9.90, 6.44, 0.52, 84.7, 233),
    "vit_tiny-": (83.1, 22.8, 58.3, 30.5, 7.24, 385, None),
}.items()}


def cell_of(device: str, model: str, options: list[str]) -> dict[str, Any]:
    """What becomes of a program on a device, loaded with options (NAME=VALUE): its summary, and the
    milliseconds of each run."""
    found = summary_of(capture(device, model, options))
    runs: dict[str, float] = {}
    if device in HARDWARE and not found["error"]:
        costs = costs_of(device, capture(device, model, options, code=True))
        runs = {name: sum(dispatch.seconds for dispatch in dispatches) * 1e3
                for name, dispatches in costs.items()}
    return {**found, "runs_ms": runs}


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def text_of(device: str, model: str, cell: dict[str, Any]) -> str:
    """A cell: pipelines, how many spill, the worst occupancy, milliseconds of CPU time to compile;
    modelled milliseconds of each run, and how many times ncnn's that is."""
    if cell["error"]:
        return "does not load"
    said = (f"{cell['pipelines']}, {len(cell['spilling'])}, {cell['occupancy']}, "
            f"{cell['compile_cpu_ms']}")
    peers = next((times for name, times in NCNN.items() if Path(model).name.startswith(name)), {})
    for milliseconds in cell["runs_ms"].values():
        said += f"; {_short(milliseconds)}"
        if peers.get(device):
            said += f" ({milliseconds / peers[device]:.2f})"
    return said + (f"; {len(cell['failed'])} do not compile" if cell["failed"] else "")


def rows_of(devices: list[str], models: list[str], options: list[str]) -> Any:
    """The lines of the table, each when it is measured, in Markdown."""
    yield f"| | {' | '.join(Path(model).stem for model in models)} |"
    yield f"| --- |{' --- |' * len(models)}"
    for device in devices:
        cells = [text_of(device, model, cell_of(device, model, options)) for model in models]
        yield f"| {device} | {' | '.join(cells)} |"
