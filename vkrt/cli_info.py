"""`vkrt info`: what a program is and how much memory it will take, without loading it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.plan import MemoryPlan
from vkrt.method import metadata_of
from vkrt.options import SMALLEST, LoadOptions
from vkrt.program import Description
from vkrt.vk.device import Device


def describe(description: Description, name: str, selector: Any, options: LoadOptions,
             smallest: bool) -> dict[str, Any]:
    """The figures of a method, in bytes and counts, for JSON.

    Args:
        selector: of the device, see `vkrt.load`.
        smallest: also finds the smallest memory budget.
    """
    graph = description.graph(name)
    metadata = metadata_of(graph)
    plan_of = next(p for p in description.program.plans if p.name == name)
    counts = sorted(graph.operator_counts().items())
    data: dict[str, Any] = {
        "inputs": [f"{i.name}: {i}" for i in metadata.inputs],
        "outputs": [str(o) for o in metadata.outputs],
        "delegates": len(plan_of.delegates),
        "dynamic": graph.is_dynamic,
        "kernels": {op: count for op, count in counts if "::" in op},
        "operators": {op: count for op, count in counts if "::" not in op},
    }
    try:
        with Device.open(selector) as device:
            work, plan = description.predict(name, device, options)
            data |= {"device": device.info.name, "storage": work.storage,
                     "dispatches": sum(hasattr(s, "shader") for s in work.steps),
                     "activations_in_file": graph.file_arena, "notes": work.notes}
            data |= _figures(plan)
            if smallest:
                least = replace(options, memory_budget=SMALLEST)
                data["smallest_budget"] = description.predict(name, device, least)[1].peak_bytes
    except UnsupportedError as error:
        data["unsupported"] = str(error)
    return data


def _figures(plan: MemoryPlan) -> dict[str, Any]:
    placement, stream = plan.placement, plan.stream
    return {"weights": plan.weight_bytes, "largest_weight": plan.largest_weight,
            "mapped": sum(w.nbytes for w in placement.weights("map")),
            "pool": plan.pool_bytes + plan.upload_bytes,
            "activations": plan.activation_bytes + plan.host_bytes,
            "state": plan.state_bytes, "staging": plan.staging_bytes, "peak": plan.peak_bytes,
            "streamed": stream.bytes_per_run if stream else 0,
            "lookahead": stream.lookahead if stream else 0}


def text(name: str, data: dict[str, Any]) -> str:
    """The same as lines of text."""
    lines = [f"method {name}"]
    lines += [f"  input   {i}" for i in data["inputs"]]
    lines += [f"  output  {o}" for o in data["outputs"]]
    lines.append(f"  {data['delegates']} delegates, {sum(data['operators'].values())} operators in "
                 f"them, {sum(data['kernels'].values())} kernels outside")
    for group in ("operators", "kernels"):
        lines += [f"    {count:>4} x {op}" for op, count in data[group].items()]
    if "unsupported" in data:
        lines.append(f"  unsupported: {data['unsupported']}")
        return "\n".join(lines)
    lines.append(f"  on {data['device']}, storage {data['storage']}: {data['dispatches']} "
                 f"dispatches{', at the largest sizes' if data['dynamic'] else ''}")
    for label, key in (("weights", "weights"), ("largest weight", "largest_weight"),
                       ("mapped, no copy", "mapped"), ("pool", "pool"),
                       ("state", "state"), ("activations", "activations"),
                       ("  by the file", "activations_in_file"),
                       ("staging", "staging"), ("predicted peak", "peak"),
                       ("read each run", "streamed"), ("smallest budget", "smallest_budget")):
        if data.get(key) or key in ("weights", "activations", "staging", "peak"):
            lines.append(f"    {label:<16}{data[key]:>14,} B{data[key] / 1e6:>10.2f} MB")
    if data["streamed"]:
        lines.append(f"    weights are loaded {data['lookahead']} layers ahead of their use")
    lines += [f"  note: {note}" for note in data["notes"]]
    return "\n".join(lines)
