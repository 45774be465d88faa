"""`vkrt info`: what a method with dynamic shapes takes at given sizes, beside what it takes at the
largest ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkrt.compiler.compiler import plan_at, plan_weights
from vkrt.compiler.description import Description
from vkrt.compiler.planned import Planned
from vkrt.compiler.shape import Shape
from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.method.arguments import metadata_of
from vkrt.plan.options import LoadOptions
from vkrt.runtime.open_device import OpenDevice
from vkrt.text.shapes import CHUNK, is_text, sizes_of
from vkrt.vk.device import Device
from vkrt.work.records import Dispatch

# Sizes of every input
Sizes = Sequence[Sequence[int]]


def usual_shapes(graph: Graph) -> list[Sizes]:
    """The shapes at which a language model reads a prompt and makes a text; none of others."""
    metadata = metadata_of(graph)
    if not is_text(metadata) or 1 not in metadata.inputs[0].dynamic_dims:
        return []
    counts = (min(CHUNK, metadata.inputs[0].sizes[1]), 1)
    return [sizes_of(metadata, count) for count in counts] if len(metadata.inputs) == 2 else []


def at_shapes(description: Description, base: Planned, device: Device, options: LoadOptions,
              shapes: Iterable[Sizes]) -> dict[str, dict[str, int]]:
    """By shape: the dispatches, the bytes of activations, and the most bytes on the device where no
    larger sizes are run.

    Args:
        base: what the method was planned to at the sizes that need the most.

    Raises:
        InputError: sizes do not fit the method.
        UnsupportedError: a kernel does not take these sizes.
    """
    found = {}
    graph = description.graph(base.graph.name)
    for sizes in shapes:
        shape = Shape(tuple(map(tuple, sizes)))
        _check(graph, shape)
        found[str(shape)] = _at_shape(description, graph, base, device, options, shape)
    return found


def _check(graph: Graph, shape: Shape) -> None:
    infos = metadata_of(graph).inputs
    if graph.reads:
        raise InputError(f"--shape: what the inputs of method '{graph.name}' hold, or what a run "
                         "finds in them, decides sizes, too")
    if len(shape.sizes) != len(infos):
        raise InputError(f"--shape: expected the sizes of {len(infos)} inputs of method "
                         f"'{graph.name}', got {len(shape.sizes)}")
    for number, (sizes, info) in enumerate(zip(shape.sizes, infos)):
        if len(sizes) != len(info.sizes) or any(
                not 1 <= size <= most if dim in info.dynamic_dims else size != most
                for dim, (size, most) in enumerate(zip(sizes, info.sizes))):
            raise InputError(f"--shape {shape}: input {number} '{info.name}' of method "
                             f"'{graph.name}' is {info}")


def _at_shape(description: Description, graph: Graph, base: Planned, device: Device,
              options: LoadOptions, shape: Shape) -> dict[str, int]:
    resolved, opened, memory = shape.resolve(graph), OpenDevice(device), base.memory
    work = base.base if resolved is base.graph else lower(resolved, base.base.target, base.base)
    # Bytes on the device beside activations, and the most while weights are brought there
    kept = (memory.weight_bytes + memory.pool_bytes + memory.upload_bytes + memory.state_bytes)
    peak = memory.peak_bytes if memory.order == "eager" else (
        memory.weight_bytes + memory.staging_bytes)
    extra = work.prepacks[len(base.base.prepacks):]
    weights = 0
    if extra:
        # Weights in layouts that they do not have at the largest sizes come after the others.
        found, mapper = plan_weights(resolved, work, extra, opened, description.sources, options)
        mapper.close()
        weights = found.memory.weight_bytes
        peak = max(peak, kept + found.memory.peak_bytes)
    figures = plan_at(resolved, work, base, opened, options, weights).executable.figures
    activations = figures.activation_bytes + figures.host_bytes
    return {"dispatches": sum(isinstance(step, Dispatch) for step in work.steps),
            "activations": activations, "peak": max(peak, kept + weights + activations)}


def dispatches(count: int) -> str:
    return f"{count:,} dispatch" + ("" if count == 1 else "es")


def lines(shapes: dict[str, dict[str, int]]) -> list[str]:
    return [f"  at {shape}: {dispatches(figures['dispatches'])}, activations "
            f"{figures['activations']:,} B, predicted peak {figures['peak']:,} B"
            for shape, figures in shapes.items()]
