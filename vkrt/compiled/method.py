"""One method for one device: from its graphs to its record in a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from vkrt.compiler.budget import first_target
from vkrt.compiler.compiler import activation_bytes, plan_at, plan_method, target_on, work_in_budget
from vkrt.compiler.plan_cache import is_fixed, method_plan
from vkrt.compiler.shape import Shape
from vkrt.errors import InputError, UnsupportedError, shortened
from vkrt.executable.executable import Executable
from vkrt.executable.memory import Block
from vkrt.executable.program import CompiledMethod, CompiledShape, SharedUse
from vkrt.graph.graph import Graph
from vkrt.graph.symbols import Symbol
from vkrt.lowering.lowering import lower
from vkrt.lowering.reuse import with_weights_of
from vkrt.memory.source import Source
from vkrt.method.arguments import metadata_of, wrong_dimension
from vkrt.plan.options import LoadOptions
from vkrt.plan.stream.other_sizes import weight_reads
from vkrt.work.command_list import CommandList
from vkrt.work.tensor import Tensor


def graphs_at(graph: Graph, shapes: Sequence[Sequence[Sequence[int]]]) -> list[Graph]:
    """The graphs of a method at the shapes at which it is compiled.

    Args:
        shapes: the sizes of each input; none for a method that has no dynamic shapes.

    Raises:
        InputError: the sizes of a shape do not fit.
        UnsupportedError: shapes are missing, or values of inputs decide what the method does.
    """
    if graph.reads or any(isinstance(value, Symbol) for value in graph.inputs):
        raise UnsupportedError(f"method '{graph.name}': what its inputs hold decides sizes, and a "
                               "compiled program does one thing for each shape; load the .pte file")
    if not shapes and not is_fixed(graph):
        raise UnsupportedError(f"method '{graph.name}' has dynamic shapes: name those that the "
                               "compiled program is to have (shapes=, --shape), or load the .pte "
                               "file")
    found = []
    for shape in dict.fromkeys(map(_sizes_of, shapes)):
        check_sizes(graph, shape)
        resolved = Shape(shape).resolve(graph)
        found.append(replace(resolved, input_names=graph.input_names,
                             output_names=graph.output_names) if resolved is not graph else graph)
    return found or [graph]


def _sizes_of(shape: Any) -> tuple[tuple[int, ...], ...]:
    """The sizes of all inputs, as tuples; InputError if they are something else."""
    if isinstance(shape, (list, tuple)) and all(isinstance(sizes, (list, tuple)) and all(
            hasattr(size, "__index__") for size in sizes) for sizes in shape):
        return tuple(tuple(map(index, sizes)) for sizes in shape)
    raise InputError("shapes: expected for each shape a list of the sizes of every input, such as "
                     f"[(1, 64), (1,)], got {shortened(repr(shape), 200)}")


def check_sizes(graph: Graph, shape: Sequence[Sequence[int]]) -> None:
    """Raises InputError unless a run of the method takes inputs of these sizes."""
    if len(shape) != len(graph.inputs):
        raise InputError(f"shapes: expected the sizes of {len(graph.inputs)} inputs of method "
                         f"'{graph.name}', got {len(shape)}")
    for info, sizes in zip(metadata_of(graph).inputs, shape):
        wrong = "" if len(sizes) == len(info.sizes) else f"; it has {len(info.sizes)} dimensions"
        wrong = wrong or wrong_dimension(sizes, info)
        if wrong and info.dtype != "none":
            raise InputError(f"shapes: '{info.name}' of method '{graph.name}' is {info}, got sizes "
                             f"{list(sizes)}{wrong}")


@dataclass(frozen=True)
class LoweredMethod:
    """The graphs of a method at all shapes, the largest first, and their command lists. The first
    has the weights of all of them."""

    graphs: tuple[Graph, ...]
    works: tuple[CommandList, ...]

    @classmethod
    def of(cls, graphs: Sequence[Graph], device: Any, sources: Sequence[Any],
           options: LoadOptions) -> LoweredMethod:
        """Lowers a method for a device, as `vkrt.compiler.compiler` has it."""
        target = first_target(target_on(device, options), options)
        base = lower(graphs[0], target)
        if len(graphs) == 1:
            base = replace(base, memo=None)
        works = [base, *(lower(graph, target, base) for graph in graphs[1:])]
        order = sorted(range(len(graphs)), reverse=True,
                       key=lambda number: activation_bytes(works[number], device, options))
        ordered = tuple(graphs[number] for number in order)
        if ordered[0] is not graphs[0]:
            base = lower(ordered[0], target)
        if options.memory_budget is not None:
            base = work_in_budget(ordered[0], base, device, sources, options, ordered[1:])
        # Each of them may read weights in a layout that none before it does.
        for graph in ordered[1:]:
            work = lower(graph, target, base)
            if len(work.prepacks) > len(base.prepacks):
                base = with_weights_of(base, work)
        others = [lower(graph, target, base) for graph in ordered[1:]]
        if options.has_budget:
            base = replace(base, other_sizes=tuple(map(weight_reads, others)))
        return cls(ordered, (base, *others))

    def compiled(self, names: Sequence[str], works: Sequence[CommandList], device: Any,
                 options: LoadOptions, written: Source, shared: tuple[SharedUse, ...]
                 ) -> CompiledMethod:
        """The method with its weights read from the compiled program.

        Args:
            names: of all methods of the program.
            works: the command lists, with the constants that they read there.
            written: the file of the compiled program, which has the weights already.
            shared: the weights that it shares with other methods.
        """
        largest, mapper = plan_method(self.graphs[0], self.works[0], works[0], device, [written],
                                      options,
                                      {storage for use in shared for storage in use.storages})
        mapper.close()
        planned = largest.planned
        plan = method_plan(names, largest)
        others, loops = [], planned.loops
        for graph, other in zip(self.graphs[1:], works[1:]):
            sized = plan_at(graph, other, planned, device, options)
            loops = max(loops, sized.executable.loops)
            others.append(CompiledShape(
                Shape.of_graph(graph, ()).sizes, tuple(map(_apart, graph.outputs)),
                sized.execution, sized.executable.figures, sized.limits, sized.index_limits))
        # The report of a load lists weights that several methods share only once.
        own = tuple(record for record in plan.executable.placements if record.placement != "shared")
        executable = plan.executable._replace(loops=loops, placements=own)
        varied = [{shape.inputs[number] for shape in others} for number in range(len(plan.inputs))]
        return CompiledMethod(plan._replace(
            inputs=tuple(map(_with_sizes, plan.inputs, varied)),
            outputs=tuple(map(_apart, plan.outputs)),
            executable=_with_room(executable, others)), tuple(others), shared)


def _apart(value: Any) -> Any:
    """An input or output with fixed sizes, and without its constant in the program's file."""
    if not isinstance(value, Tensor):
        return value
    return replace(value, constant=None, dynamic_dims=(), bounds=None)


def _with_sizes(value: Any, others: set[tuple[int, ...]]) -> Any:
    """An input that may have the sizes of `others`, too."""
    if not isinstance(value, Tensor):
        return value
    dims = tuple(dim for dim, size in enumerate(value.sizes)
                 if any(sizes[dim] != size for sizes in others))
    bounds = tuple(max((size, *(sizes[dim] for sizes in others)))
                   for dim, size in enumerate(value.sizes))
    return replace(_apart(value), dynamic_dims=dims, bounds=bounds if dims else None)


def _with_room(executable: Executable, others: Sequence[CompiledShape]) -> Executable:
    """The executable with blocks of activations that have room for all shapes, so that none of them
    makes the arena grow."""
    most: dict[tuple[str, int], int] = {}
    for shape in others:
        for block in shape.execution.blocks:
            key = block.kind, block.type_bits
            most[key] = max(block.nbytes, most.get(key, 0))

    def roomy(block: Block) -> Block:
        return block._replace(nbytes=max(block.nbytes, most.get((block.kind, block.type_bits), 0)))

    execution, figures = executable.execution, executable.figures
    blocks = tuple(map(roomy, execution.blocks))
    more = {kind: sum(new.nbytes - old.nbytes for new, old in zip(blocks, execution.blocks)
                      if new.kind == kind) for kind in ("activation", "host", "spill")}
    if not any(more.values()):
        return executable
    run = figures.run_bytes + more["activation"] + more["host"]
    figures = replace(
        figures, activation_bytes=figures.activation_bytes + more["activation"],
        host_bytes=figures.host_bytes + more["host"],
        spill_bytes=figures.spill_bytes + more["spill"],
        peak_bytes=(max(figures.peak_bytes, figures.weight_bytes + run)
                    if figures.order == "lazy"
                    else figures.peak_bytes + run - figures.run_bytes))
    return executable._replace(execution=execution._replace(blocks=blocks), figures=figures)
