"""The tables of a comparison, in Markdown: medians, and ratios to vkrt."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

# title -> (is it taken from runs with a cold cache of shaders?, digits after the point, the figure
# of one record)
FIGURES: dict[str, tuple[bool, int, Any]] = {
    "Milliseconds per inference, by the clock":
        (False, 1, lambda r: median(r["run_ms"]) if r["run_ms"] else None),
    "Milliseconds per inference, CPU time of all threads":
        (False, 1, lambda r: median(r["run_cpu_ms"]) if r["run_cpu_ms"] else None),
    "Load and first result, milliseconds by the clock (Vulkan: warm shader cache)":
        (False, 0, lambda r: r["load_ms"] + r["first_ms"]),
    "Load and first result with a cold shader cache, milliseconds by the clock":
        (True, 0, lambda r: r["load_ms"] + r["first_ms"]),
    "Load and first result with a cold shader cache, milliseconds of CPU time":
        (True, 0, lambda r: r["load_cpu_ms"] + r["first_cpu_ms"]),
    "High-water mark of the process until the first result, over what it held before the load, MB":
        (False, 0, lambda r: None if r["memory"] is None else r["memory"] / 1e6),
}
BASE = "vkrt"
# The load average from which on something else takes a part in the figures.
BUSY = 0.5


def medians(result: dict[str, Any], cold: bool, figure: Any) -> dict[tuple[str, str], float]:
    """(model, peer) -> the median of a figure over the rounds."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in result["records"]:
        value = figure(record) if record["cold"] == cold else None
        if value is not None:
            values.setdefault((record["model"], record["peer"]), []).append(value)
    return {key: median(found) for key, found in values.items()}


def table(result: dict[str, Any], title: str) -> list[str]:
    """Lines of one figure's table; none if nothing was measured for it."""
    cold, digits, figure = FIGURES[title]
    found = medians(result, cold, figure)
    peers = [peer for peer in result["peers"] if any(peer == key[1] for key in found)]
    if not peers:
        return []
    lines = [f"**{title}**", "", "| | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    ratios: dict[str, list[float]] = {peer: [] for peer in peers if peer != BASE}
    for model in result["models"]:
        cells, base = [], found.get((model, BASE))
        for peer in peers:
            value = found.get((model, peer))
            cell = "-" if value is None else f"{value:,.{digits}f}"
            if value is not None and base and peer != BASE:
                ratios[peer].append(value / base)
                cell += f" ({value / base:.2f})"
            cells.append(cell)
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    if any(ratios.values()):
        cells = [f"({math.exp(sum(map(math.log, ratios[peer])) / len(ratios[peer])):.2f})"
                 if ratios.get(peer) else "" for peer in peers]
        lines.append("| geometric mean of the ratios | " + " | ".join(cells) + " |")
    return [*lines, ""]


def markdown(result: dict[str, Any]) -> str:
    """The whole report of what `bench_peers.py --json` writes."""
    facts = result["facts"]
    versions = ", ".join(f"{peer} {version}" for peer, version in facts["versions"].items())
    devices = "; ".join(f"{device} ({', '.join(peers)})"
                        for device, peers in facts["devices"].items())
    busy = (f", on a busy machine (load average {facts['load']:.1f} at the start)"
            if facts["load"] > BUSY else "")
    lines = [f"Measured on {facts['date']}: {facts['processor']}, {facts['threads']} threads, "
             f"{facts['rounds']} round{'s' * (facts['rounds'] > 1)} of {facts['inferences']} "
             f"inferences{busy}. "
             f"Vulkan device: {devices or 'none'}. Versions: {versions}. In brackets: the ratio "
             f"to vkrt.", ""]
    for title in FIGURES:
        lines += table(result, title)
    errors: dict[str, float] = {}
    for (_, peer), value in medians(result, False, lambda r: r["error"]).items():
        errors[peer] = max(value, errors.get(peer, 0.0))
    if errors:
        lines += ["Largest relative L2 distance from eager PyTorch: "
                  + ", ".join(f"{peer} {value:.0e}" for peer, value in errors.items()) + ".", ""]
    drivers = [r["driver_memory"] for r in result["records"] if r.get("driver_memory")]
    if drivers:
        lines += [f"Of each high-water mark with Vulkan, {median(drivers) / 1e6:.0f} MB are the "
                  f"driver's own (a device opened by vkrt, and nothing loaded).", ""]
    for failure in result["failures"]:
        lines.append(f"* Not measured: {failure['peer']}"
                     + (f", {failure['model']}" if failure["model"] else "")
                     + f": {failure['why']}")
    return "\n".join(lines).rstrip() + "\n"
