"""`vkrt info`: what a program is and how much memory it will take, without loading it."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vkrt.cli import common, info_memory, info_shapes
from vkrt.cli.process import EXIT_FAILED
from vkrt.compiler.compiler import specialization_of, target_on
from vkrt.compiler.description import Description
from vkrt.compiler.plan_cache import why_unkept
from vkrt.compiler.planned import Planned
from vkrt.compiler.program_files import is_compiled, verify
from vkrt.errors import InputError, LoaderError, UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.graph.wording import counted
from vkrt.method.arguments import metadata_of
from vkrt.ops.registry import operator
from vkrt.plan.kernels import kernels_of
from vkrt.plan.memory_plan import MemoryPlan
from vkrt.plan.options import SMALLEST, LoadOptions
from vkrt.report.columns import byte_lines
from vkrt.runtime.open_device import OpenDevice
from vkrt.runtime.pipelines import Pipelines
from vkrt.runtime.refusals import with_smaller
from vkrt.vk.device import Device
from vkrt.work.command_list import CommandList
from vkrt.work.records import HostCall

# What is printed of the figures, by their keys
FIGURES = {"weights": "weights", "largest weight": "largest_weight", "mapped, no copy": "mapped",
           "pool": "pool", "state": "state", "activations": "activations",
           "  by the file": "activations_in_file", "staging": "staging", "predicted peak": "peak",
           "read each run": "streamed", "smallest budget": "smallest_budget"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_flag(parser, "--verify", "also read all constants and compare them with their "
                    "names, which are the sha256 of their bytes")
    common.add_flag(parser, "--compile", "also create the pipelines and say how long that takes, "
                    "without those that prepare weights; what is in the driver's cache takes no "
                    "time")
    common.add_flag(parser, "--passes", "print the graph of each method as exported, and after "
                    "each pass that changes it")
    common.add_flag(parser, "--memory", "also print which tensors make the peak of the "
                    "activations, and what each choice of --prefer would make of it")
    parser.add_argument("--shape", action="append", metavar="SIZES", type=common.sizes_of,
                        dest="shapes", default=[],
                        help="also print what \"forward\", or the only method, takes at these "
                             "sizes of its inputs, such as '1,3,224,224' or, of two, '1,64 1'; "
                             "several times for several shapes (default: of a language model, 64 "
                             "tokens of a prompt and 1 of a text)")
    common.add_load_options(parser, memory_budget={
        "nargs": "?", "const": "", "more": "; also prints the smallest budget that the program "
        "runs in, and without BYTES nothing else changes"})
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    if is_compiled(options.model):
        if options.passes:
            raise InputError(f"{options.model}: a compiled program has no graph for passes; give "
                             "the .pte file")
        if options.shapes:
            raise InputError(f"--shape: {options.model} is a compiled program and has its own "
                             "shapes; give the .pte file")
        from vkrt.cli import info_compiled  # .pte programs do not need it

        compiled = info_compiled.describe(options.model)
        common.show(options, compiled, info_compiled.text(compiled))
        return 0
    description = Description(options.model, options.data_path)
    try:
        if options.passes:
            texts = {name: _passes(description, name, options) for name in description.method_names}
            common.show(options, {"file": options.model, "passes": texts}, "\n\n".join(
                text for each in texts.values() for text in each))
            return 0
        if options.shapes and len(description.method_names) > 1 \
                and "forward" not in description.method_names:
            raise InputError(f"--shape: {options.model} has several methods, of which none is "
                             "\"forward\"")
        methods = {name: describe(description, name, common.device_of(options.device),
                                  common.load_options(options), options.memory_budget is not None,
                                  options.compile, options.memory, options.shapes)
                   for name in description.method_names}
    finally:
        description.close()
    result = {"file": options.model, "methods": methods}
    lines = [text(name, data) for name, data in methods.items()]
    if options.verify:
        result["verified"] = verify(options.model, options.data_path)
        lines.append(f"{result['verified']} constants have the bytes that their names say")
    common.show(options, result, "\n".join(lines))
    if any("unsupported" in data for data in methods.values()):
        return common.EXIT_UNSUPPORTED
    # Without a driver only the file is described: that is a failure if more was asked for.
    asked = options.device is not None or options.compile or options.memory_budget is not None
    return EXIT_FAILED if asked and any("no_driver" in data for data in methods.values()) else 0


def _passes(description: Description, name: str, options: argparse.Namespace) -> list[str]:
    """The graph of a method at the sizes that it is planned for, and after each pass that changes
    it, as texts."""
    from vkrt.dynamic.extremes import largest_and_near
    from vkrt.passes.pipeline import run_passes
    from vkrt.passes.text import text_of

    graph = largest_and_near(description.graph(name))[0]
    texts = [f"method '{name}'\n{text_of(graph)}"]
    with Device.open(common.device_of(options.device)) as device:
        target = target_on(OpenDevice(device), common.load_options(options))
        run_passes(graph, target, on_pass=lambda one, new:
                   texts.append(f"{len(texts):02} {one.name}: {one.summary}\n{text_of(new)}"))
    return texts


def describe(description: Description, name: str, selector: Any, options: LoadOptions,
             smallest: bool, compiles: bool = False, explains: bool = False,
             shapes: Sequence[info_shapes.Sizes] = ()) -> dict[str, Any]:
    """The figures of a method, in bytes and counts, for JSON; or only its values if it is constant.
    If asked: also the smallest memory budget, the time of pipelines, and what makes the peak.

    Args:
        shapes: of the inputs of "forward" or the only method, at which it is described, too.
    """
    graph = description.graph(name)
    if graph.is_constant:
        return {"values": graph.outputs}
    metadata = metadata_of(graph)
    plan_of = next(p for p in description.program.plans if p.name == name)
    kernels = Counter(node.kernel for node in graph.nodes if node.kernel)
    on_host = Counter(node.op for node in graph.nodes if node.is_host and operator(node.op))
    counts = graph.operator_counts() - kernels
    data: dict[str, Any] = {
        "inputs": [f"{i.name}: {i}" for i in metadata.inputs],
        "outputs": [f"{o.name}: {o}" for o in metadata.outputs],
        "delegates": len(plan_of.delegates),
        "dynamic": graph.is_dynamic,
        "kernels": dict(sorted(kernels.items())),
        "kernels_on_host": dict(sorted(on_host.items())),
        "operators": dict(sorted(counts.items())),
    }
    try:
        with Device.open(selector) as device:
            planned, pipelines = with_smaller(device, partial(
                _predict, description, name, device, options, compiles))
            work, plan = planned.work, planned.memory
            data |= {"device": device.info.name, "storage": work.storage,
                     "dispatches": sum(hasattr(s, "shader") for s in work.steps),
                     "activations_in_file": graph.file_arena,
                     "notes": [*work.notes, *_unkept(graph)]}
            data |= _figures(plan) | _crossings(work) | pipelines
            asked = shapes if name == "forward" or len(description.method_names) == 1 else ()
            data["shapes"] = info_shapes.at_shapes(
                description, planned, device, options,
                asked or info_shapes.usual_shapes(graph))
            if explains:
                data["at_the_peak"] = info_memory.at_the_peak(
                    work, [node.op for node in graph.nodes])
                data["preferences"] = info_memory.preferences(description, name, device, options)
            if smallest:
                options = replace(options, memory_budget=SMALLEST)
                data["smallest_budget"] = description.compile(
                    name, OpenDevice(device), options).memory.peak_bytes
    except UnsupportedError as error:
        data["unsupported"] = str(error)
    except LoaderError as error:
        data["no_driver"] = str(error)
    return data


def _predict(description: Description, name: str, device: Device, options: LoadOptions,
             compiles: bool) -> tuple[Planned, dict[str, Any]]:
    planned = description.compile(name, OpenDevice(device), options)
    return planned, _pipelines(device, planned.work, options, compiles)


def _unkept(graph: Graph) -> list[str]:
    """What there is to say of a method of which loads keep no plan."""
    why = why_unkept(graph)
    return [f"no plan of it is kept for later loads: {why}"] if why else []


def _figures(plan: MemoryPlan) -> dict[str, Any]:
    placements, stream = plan.placements, plan.stream
    return {"weights": plan.weight_bytes, "largest_weight": plan.largest_weight,
            "mapped": sum(w.nbytes for w in placements.weights("map")),
            "pool": plan.pool_bytes + plan.upload_bytes,
            "activations": plan.activation_bytes + plan.host_bytes,
            "state": plan.state_bytes, "staging": plan.staging_bytes, "peak": plan.peak_bytes,
            "streamed": plan.row_bytes + (stream.bytes_per_run if stream else 0),
            "lookahead": stream.lookahead if stream else 0}


def _crossings(work: CommandList) -> dict[str, int]:
    """What the host costs a run: how often it waits for the device, and how many bytes of device
    memory its kernels read and write."""
    calls = [step for step in work.steps if isinstance(step, HostCall)]
    return {"host_waits": len(calls),
            "host_reads": sum(operand.nbytes for call in calls for operand in call.reads),
            "host_writes": sum(operand.nbytes for call in calls for operand in call.writes)}


def _pipelines(device: Device, work: CommandList, options: LoadOptions,
               compiles: bool) -> dict[str, Any]:
    """How many pipelines the dispatches have, and the milliseconds that creating them takes."""
    pipelines = Pipelines(device)
    kernels = kernels_of(work, specialization_of(device.info, options))
    try:
        figures: dict[str, float] = {"pipelines": len(pipelines.missing(kernels))}
        if compiles:
            wall, cpu = time.perf_counter(), time.process_time()
            pipelines.begin(kernels)
            pipelines.finish()
            figures |= {"compile_ms": (time.perf_counter() - wall) * 1e3,
                        "compile_cpu_ms": (time.process_time() - cpu) * 1e3}
            pipelines.save()
        return figures
    finally:
        pipelines.close()


def text(name: str, data: dict[str, Any]) -> str:
    if "values" in data:
        return f"method {name} returns {', '.join(map(str, data['values'])) or 'nothing'}"
    lines = [f"method {name}", *(f"  input   {i}" for i in data["inputs"]),
             *(f"  output  {o}" for o in data["outputs"])]
    lines.append(f"  {counted(data['delegates'], 'delegate')} with "
                 f"{counted(sum(data['operators'].values()), 'operator')}, "
                 f"{counted(sum(data['kernels'].values()), 'kernel')} outside")
    for group in ("operators", "kernels"):
        lines += [f"    {count:>4} x {op}"
                  + (" on the host" if group == "kernels" and op in data["kernels_on_host"] else "")
                  for op, count in data[group].items()]
    for key, what in (("unsupported", "unsupported"), ("no_driver", "memory is not predicted")):
        if key in data:
            return "\n".join([*lines, f"  {what}: {data[key]}"])
    lines.append(f"  on {data['device']}, storage {data['storage']}: "
                 f"{_steps(data)}{', at the largest sizes' if data['dynamic'] else ''}")
    lines += [f"    {line}" for line in byte_lines(
        [(label, data.get(key, 0)) for label, key in FIGURES.items()],
        {"weights", "activations", "staging", "predicted peak"})]
    if data["streamed"]:
        lines.append(f"    weights are loaded {counted(data['lookahead'], 'sync point')} ahead of "
                     "their use")
    if "at_the_peak" in data:
        lines += info_memory.lines(data["at_the_peak"], data["preferences"])
    lines += info_shapes.lines(data["shapes"])
    lines += [f"  note: {note}" for note in data["notes"]]
    return "\n".join(lines)


def _steps(data: dict[str, Any]) -> str:
    text = (f"{info_shapes.dispatches(data['dispatches'])} of "
            f"{counted(data['pipelines'], 'pipeline')}")
    if "compile_ms" in data:
        text += f" ({data['compile_ms']:.0f} ms to create, {data['compile_cpu_ms']:.0f} ms of CPU)"
    on_host = sum(data["kernels_on_host"].values())
    if on_host:
        text += f", {counted(on_host, 'kernel')} on the host"
    if data["host_waits"]:
        text += (f" (each run waits {counted(data['host_waits'], 'time')} for the device, reads "
                 f"{data['host_reads']:,} B and writes {data['host_writes']:,} B)")
    return text
