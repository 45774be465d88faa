"""A program as a table of HTML, as notebooks show it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from vkrt.method.method import Method
from vkrt.report.memory import MemoryReport
from vkrt.vk.device import Device


def html_of(name: str, device: Device, methods: Iterable[Method],
            memory: MemoryReport) -> str:
    """Inputs, outputs, bytes and placements of a program; `name` is that of its file."""
    rows = [("program", name), ("device", device.info.name)]
    for method in methods:
        for kind, infos in (("input", method.metadata.inputs),
                            ("output", method.metadata.outputs)):
            rows += [(f"{kind} {info.name} of {method.metadata.name}", str(info)) for info in infos]
    rows += [(name, f"{nbytes:,} B") for name, nbytes in (
        ("weights", memory.weights), ("activations", memory.activations),
        ("state", memory.state), ("planned peak", memory.planned_peak),
        ("measured peak", memory.measured_peak))]
    for kind in sorted({record.placement for record in memory.placements}):
        sizes = [r.nbytes for r in memory.placements if r.placement == kind]
        rows.append((f"{kind} weights", f"{len(sizes)}, {sum(sizes):,} B"))
    return "<table>" + "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
                               for name, text in rows) + "</table>"
