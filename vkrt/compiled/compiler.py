"""Compiler: from a program to a file that a runtime loads without lowering or planning anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, BinaryIO

from vkrt.compiled.file import HEAD, SUFFIX
from vkrt.compiled.method import LoweredMethod, graphs_at
from vkrt.compiled.shared import SharedWeights, shared_weights, uses_of
from vkrt.compiled.weights import CompiledWeights
from vkrt.compiler.compiler import placements_alone, plan_weights
from vkrt.compiler.description import Description
from vkrt.compiler.generic import NAME as GENERIC
from vkrt.compiler.generic import GenericDevice
from vkrt.compiler.plan_cache import method_plan
from vkrt.compiler.program_files import COMPILED_MAGIC as MAGIC
from vkrt.compiler.shape import ShapePlan
from vkrt.errors import InputError, UnsupportedError
from vkrt.executable import flat, rows
from vkrt.executable.executable import Executable
from vkrt.executable.modules import module_of
from vkrt.executable.program import (
    Compiled,
    CompiledMethod,
    CompiledTarget,
    ConstantMethod,
    Module,
    shaders_of,
)
from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.graph.graph import Graph
from vkrt.memory.sha256 import sha256
from vkrt.memory.source import Source
from vkrt.plan.options import LoadOptions
from vkrt.report.stopwatch import OnProgress
from vkrt.runtime.open_device import OpenDevice
from vkrt.shader import shader_library
from vkrt.version import __version__
from vkrt.vk.device import Device
from vkrt.work.command_list import CommandList
from vkrt.work.host_arguments import BRANCH
from vkrt.work.records import HostCall
from vkrt.work.tensor import round_up


@dataclass(frozen=True)
class Compilation:
    """What `compile` did.

    Attributes:
        output: the file written.
        targets: names of the devices it is for.
        methods: names of the methods in it, those that only return numbers included.
        modules: how many shaders are in it.
        weight_bytes: of all weights.
        file_bytes: of the file.
        peak_bytes: for each target, the most device memory that loading and running one of the
            methods takes.
    """

    output: str
    targets: tuple[str, ...]
    methods: tuple[str, ...]
    modules: int
    weight_bytes: int
    file_bytes: int
    peak_bytes: tuple[int, ...]


def compile(source: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, *,
            device: Any = None, shapes: Sequence[Sequence[Sequence[int]]] = (),
            data_path: Any = None,
            on_progress: OnProgress | None = None, **options: Any) -> Compilation:
    """Compiles a program to a file that `vkrt.load` takes like a program, without any other file.

    It has the executables of all methods, their weights as kernels read them, and the SPIR-V of
    their shaders. A load of it lowers and plans nothing. It is for the devices that it is compiled
    for, and for others whose memory and limits fit.

    Args:
        source: path of a `.pte` file.
        output: path of the file; by default the program's with `.vkx` in the place of its suffix.
            It is there whole or not at all.
        device: the device, or a list of devices, as `vkrt.load` has them; "generic" for any device
            that has what the specification asks of all (weights are then copied, never mapped).
        shapes: of the inputs of "forward", or of the only method, where these are dynamic: the
            compiled program runs at them and at no others. A shape has the sizes of every input.
        data_path: of the program's external data, see `vkrt.load`.
        on_progress: called with "pack", the bytes of weights that are written, and all of them;
            an exception from it ends the call, and nothing is written.
        options: those of `vkrt.load` that decide what is loaded: `storage`, `weights`,
            `memory_budget`, `stream_lookahead`, `winograd`, `prefer`, `cache`, `fusions`,
            `specialize`, `order`, `chunk`.

    Raises:
        OSError: a file cannot be read or written.
        FormatError: a byte of the program is not what the format allows.
        InputError: an argument does not fit, or another kind of file is at `output`.
        UnsupportedError: a method needs what vkrt does not have, needs kernels on the host, or has
            dynamic shapes and there are no `shapes`.
    """
    selectors = device if isinstance(device, (list, tuple)) else [device]
    if not selectors:
        raise InputError("device=[]: expected at least one device to compile for")
    if not isinstance(shapes, (list, tuple)):
        raise InputError(f"shapes: expected a list of shapes, got a {type(shapes).__name__}")
    with closing(Description(os.fspath(source), data_path)) as description, ExitStack() as opened:
        name = os.path.splitext(description.source.name)[0] + SUFFIX
        name = os.fspath(output) if output is not None else name
        check_replaceable(name, lambda head: head.startswith(MAGIC), "a compiled program")
        devices = [_device(one, opened) for one in selectors]
        compiled, weights = _write(name, description, devices, LoadOptions(**options), shapes,
                                   on_progress)
    return Compilation(
        name, tuple(target.device for target in compiled.targets),
        compiled.targets[0].methods[0].largest.methods, len(compiled.modules),
        weights, os.path.getsize(name),
        tuple(max(target.figures_of(method).peak_bytes for method in target.methods)
              for target in compiled.targets))


def _device(selector: Any, opened: ExitStack) -> Any:
    """What a selector means for the compiler; `opened` closes the device where it is opened
    here."""
    if selector == GENERIC:
        return GenericDevice()
    if not isinstance(selector, Device):
        selector = opened.enter_context(Device.open(selector))
    return OpenDevice(selector)


def _write(output: str, description: Description, devices: Sequence[Any], options: LoadOptions,
           shapes: Sequence[Sequence[Sequence[int]]], on_progress: OnProgress | None,
           ) -> tuple[Compiled, int]:
    """Writes the file; returns its records, and the bytes of its weights."""
    sources, name = description.sources, description.source.name
    methods = [description.graph(method) for method in description.method_names]
    constants = tuple(ConstantMethod(graph.name, tuple(graph.outputs))
                      for graph in methods if graph.is_constant)
    of_methods = [graphs_at(graph, shapes if len(methods) == 1 or graph.name == "forward" else ())
                  for graph in methods if not graph.is_constant]
    if not of_methods:
        raise UnsupportedError(f"{name}: no method computes anything")
    lowered = [[LoweredMethod.of(graphs, device, sources, options) for graphs in of_methods]
               for device in devices]
    works = [work for on_device in lowered for method in on_device for work in method.works]
    for work in works:
        _check_host(work, name)
    weights = CompiledWeights(works, sources)
    with replacing(output) as file:
        weights.write(file, on_progress)
        file.flush()
        with closing(Source.open(file.name)) as written:
            names = [graph.name for graph in methods]
            targets = tuple(_target(on_device, names, device, options, written, weights)
                            for device, on_device in zip(devices, lowered))
        executables = [executable for target in targets
                       for method in (*target.shared, *target.methods)
                       for executable in method.executables]
        modules = _write_modules(file, executables)
        compiled = Compiled(__version__, os.path.basename(name), constants, targets, modules)
        start = round_up(file.tell(), 8)
        records = rows.to_bytes(compiled)
        flat.File(records, 1, start)  # or no load would take it
        file.write(bytes(start - file.tell()) + records)
        file.seek(0)
        file.write(HEAD.pack(MAGIC, flat.PROGRAM_FILE_VERSION, 0, start, len(records)))
        for source in sources:
            source.check_unchanged()
    return compiled, weights.nbytes


def _target(methods: Sequence[LoweredMethod], names: Sequence[str], device: Any,
            options: LoadOptions, written: Source, weights: CompiledWeights) -> CompiledTarget:
    """The methods for a device; `names` are all of the program's, and the file `written` has the
    weights already. With a memory budget each is planned by itself, and nothing is shared."""
    works = [weights.apply(method.works[0]) for method in methods]
    shared: list[SharedWeights] = []
    if len(works) > 1 and not options.has_budget:
        placements = [placements_alone(work, device, [written], options) for work in works]
        shared = shared_weights(works, [[weight.storage for weight in
                                         placed.weights("direct", "staged")]
                                        for placed in placements])
    compiled = tuple(
        method.compiled(names, [work, *map(weights.with_tables, method.works[1:])], device, options,
                        written, uses_of(number, shared))
        for number, (method, work) in enumerate(zip(methods, works)))
    return CompiledTarget(device.info.name, compiled, tuple(
        _alone(one, ", ".join(compiled[number].name for number in one.storages), device, options,
               written) for one in shared))


def _alone(shared: SharedWeights, name: str, device: Any, options: LoadOptions, written: Source,
           ) -> CompiledMethod:
    """Shared weights as a method that computes nothing."""
    work = shared.work
    graph = Graph(name, [], [])
    planned, mapper = plan_weights(graph, work, work.prepacks, device, [written], options)
    mapper.close()
    return CompiledMethod(method_plan([name], ShapePlan(graph, planned)))


def _check_host(work: CommandList, name: str) -> None:
    """Refuses kernels of the host: a runtime without Python has none."""
    kernels = sorted({step.kernel for step in work.steps
                      if isinstance(step, HostCall) and step.table is None} - {BRANCH})
    if kernels:
        raise UnsupportedError(f"{name}: {', '.join(kernels)} run on the host, and a compiled "
                               "program has no kernels for that; load the .pte file")


def _write_modules(file: BinaryIO, executables: Sequence[Executable]) -> tuple[Module, ...]:
    """Writes the SPIR-V of all shaders that executables need."""
    modules = []
    for name in sorted(shaders_of(executables)):
        file.write(bytes(-file.tell() % 4))
        code = bytes(shader_library().get(name).spirv)
        modules.append(module_of(name)._replace(sha256=sha256(code).hex(),
                                                offset=file.tell(), nbytes=len(code)))
        file.write(code)
    return tuple(modules)
