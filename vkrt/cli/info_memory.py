"""`vkrt info --memory`: which tensors make the peak of the activations, and what the peak is with
each value of `prefer`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkrt.compiler.description import Description
from vkrt.graph.wording import counted
from vkrt.plan.blocks import lifetimes
from vkrt.plan.options import LoadOptions
from vkrt.plan.scratch import alive
from vkrt.runtime.open_device import OpenDevice
from vkrt.vk.device import Device
from vkrt.work.command_list import CommandList
from vkrt.work.option_values import PREFERENCES
from vkrt.work.tensor import Operand

# So many of the tensors that are alive at the peak are shown, the largest ones
MOST = 8
# In the place of the node that makes a tensor: the host or a state makes it
HOST, STATE = -1, -2


def at_the_peak(work: CommandList, operators: list[str]) -> dict[str, Any]:
    """The tensors that are alive when activations take the most bytes."""
    curve = alive(work)
    when = max(range(len(curve)), key=curve.__getitem__)
    times = lifetimes(work)
    there = [storage for storage in work.storages
             if storage.role != "weight" and storage.id in times
             and times[storage.id][0] <= when <= times[storage.id][1]]
    there.sort(key=lambda storage: -storage.nbytes)
    makers = _makers(work)
    tensors = []
    for storage in there:
        node, operand = makers[storage.id]
        tensors.append({"bytes": storage.nbytes, "sizes": list(operand.sizes),
                        "dtype": operand.dtype, "of": _of(node, operators),
                        "until": _of(_node_at(work, times[storage.id][1]), operators)})
    return {"step": when, "steps": len(work.steps), "bytes": curve[when],
            "at": _of(_node_at(work, when), operators), "tensors": tensors}


def preferences(description: Description, name: str, device: Device, options: LoadOptions
                ) -> dict[str, dict[str, int]]:
    """By value of `prefer`: the peak and the activations in bytes, and the steps of a run."""
    found = {}
    for prefer in PREFERENCES:
        planned = description.compile(name, OpenDevice(device), replace(options, prefer=prefer))
        memory = planned.memory
        found[prefer] = {"peak": memory.peak_bytes,
                         "activations": memory.activation_bytes + memory.host_bytes,
                         "steps": len(planned.work.steps)}
    return found


def lines(peak: dict[str, Any], others: dict[str, dict[str, int]]) -> list[str]:
    found = [f"  the most is alive at step {peak['step']} of {peak['steps']}, {peak['at']}: "
             f"{peak['bytes']:,} B"]
    for tensor in peak["tensors"][:MOST]:
        sizes = ",".join(map(str, tensor["sizes"]))
        found.append(f"    {tensor['bytes']:>14,} B  {tensor['dtype']}[{sizes}] of {tensor['of']}, "
                     f"until {tensor['until']}")
    rest = peak["tensors"][MOST:]
    if rest:
        found.append(f"    {sum(tensor['bytes'] for tensor in rest):>14,} B  in "
                     f"{counted(len(rest), 'smaller one')}")
    for prefer, figures in others.items():
        found.append(f"  prefer=\"{prefer}\": peak {figures['peak']:,} B, activations "
                     f"{figures['activations']:,} B, {counted(figures['steps'], 'step')}")
    return found


def _makers(work: CommandList) -> dict[int, tuple[int, Operand]]:
    """By the id of a storage: the node that writes it first, and the operand that it writes."""
    found = {record.operand.storage.id: (STATE, record.operand) for record in work.states}
    for operand in work.inputs:
        if operand is not None:
            found.setdefault(operand.storage.id, (HOST, operand))
    for step in work.steps:
        for operand in (*step.writes, *step.reads):
            found.setdefault(operand.storage.id, (step.node, operand))
    return found


def _node_at(work: CommandList, time: int) -> int:
    """The node at a time of `lifetimes`; after the last step, a number beyond all nodes."""
    if time == 0:
        return HOST
    return work.steps[time - 1].node if time <= len(work.steps) else 1 << 31


def _of(node: int, operators: list[str]) -> str:
    if node < 0:
        return "a state" if node == STATE else "the inputs"
    return f"node {node} ({operators[node]})" if node < len(operators) else "the outputs"
