"""Executables of programs, made without a driver, and the files that they are in."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import is_dataclass, replace
from functools import cache

from plan_samples import exact_requirements
from support import MODELS

from vkrt.compiled.shared import shared_weights, uses_of
from vkrt.compiler.description import Description
from vkrt.compiler.planned import Planned
from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.executable import flat, rows
from vkrt.executable.executable import Executable
from vkrt.executable.modules import module_of
from vkrt.executable.program import (
    Compiled,
    CompiledMethod,
    CompiledTarget,
    ConstantMethod,
    MethodPlan,
    Module,
    shaders_of,
)
from vkrt.executable.records import HostArray
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.plan.budget import Budget
from vkrt.plan.placement import Placements, placements_of
from vkrt.plan.plan import plan
from vkrt.work.command_list import CommandList
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def target(storage: str) -> Target:
    return Target(storage, max_texels=1 << 26, max_image_extent=2048, scratch="spare")


def graphs(path) -> list[Graph]:
    data = sorted(path.parent.glob(f"{path.stem}*.ptd"))
    with closing(Description(str(path), data)) as description:
        return [description.graph(name) for name in description.method_names]


def planned_in(work: CommandList, weights: str = "copy", unified: bool = True,
               budget: Budget | None = None) -> Executable:
    """The executable of a command list whose weights come to the device in some way."""
    placed = Placements(work.weight_table, placements_of(work, weights, unified=unified,
                                                    cannot_map=lambda weight: ""))
    memory = plan(work, exact_requirements, placements=placed, unified=unified, budget=budget)
    return Planned(Graph("", [], []), work, work, memory).record


@cache
def works() -> dict[str, CommandList]:
    """Command lists with states, quantized weights, kernels of the host and branches."""
    found = {}
    for name in ("kept_attention", "quantized_mlp", "branches", "places", "conv_mix"):
        graph, = graphs(MODELS / f"{name}.pte")
        found[name] = lower(graph, target("texture3d" if name == "conv_mix" else "texel"))
    return found


@cache
def samples() -> list[Executable]:
    """With weights in every kind of placement."""
    ways = (("map", True, None), ("direct", True, None), ("copy", False, None),
            ("stream", True, Budget(None, 2)), ("stream", False, Budget(None, 0)))
    found = []
    for work in works().values():
        for way in ways:
            try:
                found.append(planned_in(work, *way))
            except (InputError, UnsupportedError):
                continue
    return found


def modules_of(executable: Executable) -> tuple[Module, ...]:
    return tuple(map(module_of, shaders_of([executable])))


def program_of(executable: Executable, modules: Sequence[Module] | None = None,
               constants: Sequence[ConstantMethod] = ()) -> Compiled:
    """A program with this method, whose shaders are in no file."""
    def values(arrays: Sequence[HostArray | None]) -> tuple[Tensor | None, ...]:
        return tuple(None if a is None else Tensor(a.sizes, a.dtype) for a in arrays)

    execution = executable.execution
    method = MethodPlan(("forward",), "forward", values(execution.inputs),
                        values(execution.outputs), (), (), 0, executable, (), ())
    return Compiled("1.0", "test.pte", tuple(constants),
                    (CompiledTarget("test", (CompiledMethod(method),)),),
                    modules_of(executable) if modules is None else tuple(modules))


def sharing() -> Compiled:
    """A program with this method, of which all weights but one are shared."""
    work = works()["conv_mix"]
    copied = [weight.storage for weight in work.weight_table][1:]
    one, = shared_weights((work, work), (copied, copied))
    placed = Placements(work.weight_table, placements_of(
        work, "copy", unified=False, cannot_map=lambda weight: "", shared=copied))
    memory = plan(work, exact_requirements, placements=placed, unified=False)
    own = Planned(Graph("", [], []), work, work, memory).record
    alone = planned_in(one.work, "copy", False)
    program = program_of(own)
    target, = program.targets
    method, = target.methods
    shared, = program_of(alone).targets[0].methods
    target = target._replace(methods=(method._replace(shared=uses_of(0, [one])),), shared=(shared,))
    return program._replace(targets=(target,), modules=tuple(
        map(module_of, shaders_of([own, alone]))))


def executable_of(program: Compiled) -> Executable:
    return program.targets[0].methods[0].largest.executable


def with_checksum(data: bytes) -> bytes:
    """A flat file with the checksum that it should have."""
    body = data[flat.HEADER_BYTES:]
    return data[:flat.HEADER_BYTES - 8] + struct.pack("<Q", flat.checksum(body)) + body


def is_refused(bad: bytes) -> bool:
    """Whether a file is refused as damaged; one that is read has to be the one encoding of what it
    holds."""
    try:
        found = flat.File(bad, 1, 0).read()
    except FormatError:
        return True
    assert rows.to_bytes(found) == bad
    return False


def changed(record, way: str, value):
    """A record with one part of it changed; `way` leads there, e.g. "weights.mapped.0.offset"."""
    name, _, rest = way.partition(".")
    if isinstance(record, tuple) and name.isdecimal():
        index = int(name)
        new = changed(record[index], rest, value) if rest else value
        return (*record[:index], new, *record[index + 1:])
    new = changed(getattr(record, name), rest, value) if rest else value
    return (replace if is_dataclass(record) else type(record)._replace)(record, **{name: new})
