"""Executables of every program: made without a driver, sound, and the same from a file."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import FrozenInstanceError, fields
from functools import cache

import pytest
from plan_samples import exact_requirements
from support import MODELS, model_folders

from vkrt.dataclass import replace
from vkrt.description import Description
from vkrt.digest import sha256
from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.executable import executable as executables
from vkrt.executable.check import check
from vkrt.executable.executable import RECORDS, UNIONS, Executable
from vkrt.executable.flat import HEADER, Format
from vkrt.executable.records import DispatchCommand
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol
from vkrt.method.planned import Planned
from vkrt.ops.lowering import lower
from vkrt.plan.budget import Budget
from vkrt.plan.placement import Placements, placements_of
from vkrt.plan.plan import plan
from vkrt.work.records import ReadArgument, WorkList
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

PROGRAMS = sorted({path for folder in model_folders() for path in folder.rglob("*.pte")})
STORAGES = ("texel", "buffer", "texture3d")
FORMAT = Format(Executable, RECORDS, UNIONS, (ReadArgument,), b"testexec", 1)
# As many files as a program may have here
SOURCES = 8


def target(storage: str) -> Target:
    return Target(storage, max_texels=1 << 26, max_image_extent=2048, scratch="spare")


def graphs(path) -> list[Graph]:
    data = sorted(path.parent.glob(f"{path.stem}*.ptd"))
    with closing(Description(str(path), data)) as description:
        return [description.graph(name) for name in description.method_names]


def planned_in(work: WorkList, weights: str = "copy", unified: bool = True,
               budget: Budget | None = None) -> Executable:
    """The executable of a work list whose weights come to the device in some way."""
    placed = Placements(work.catalog, placements_of(work, weights, unified=unified,
                                                    cannot_map=lambda weight: ""))
    memory = plan(work, exact_requirements, placements=placed, unified=unified, budget=budget)
    return Planned(work, work, memory).executable


def contents(graph: Graph) -> list[str]:
    """Everything a graph is made of, down to the last attribute."""
    things = [graph, *graph.nodes, *graph.chain, *graph.states]
    things += [t for node in graph.nodes for t in (*node.tensors(), *node.outs)]
    things += [value for value in (*graph.inputs, *graph.outputs) if isinstance(value, Tensor)]
    return [repr([(name, repr(value), id(value) if isinstance(value, (Tensor, Node)) else 0)
                  for name, value in sorted(vars(thing).items())])
            for thing in things if isinstance(thing, (Graph, Node, Symbol, Tensor))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program(path):
    """Of every method in every storage; and lowering and planning change no graph."""
    try:
        methods = graphs(path)
    except (FormatError, UnsupportedError):
        pytest.skip("no graph can be made of it")
    for graph in methods:
        before = contents(graph)
        for storage in STORAGES:
            try:
                made = planned_in(lower(graph, target(storage)))
            except UnsupportedError:
                break
            check(made, SOURCES)
            data = FORMAT.to_bytes(made)
            found = FORMAT.from_bytes(data)
            assert found == made
            assert FORMAT.to_bytes(found) == data
        assert contents(graph) == before


@cache
def works() -> dict[str, WorkList]:
    """Work lists with states, quantized weights, kernels of the host and branches."""
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


def test_samples_have_everything():
    weights = [sample.weights for sample in samples()]
    for name in ("mapped", "written", "streamed"):
        assert any(getattr(plan, name) for plan in weights), name
    assert any(plan.prepack.batches for plan in weights)
    assert any(streamed.pieces for plan in weights for streamed in plan.streamed)
    assert any(sample.states.tensors for sample in samples())
    assert any(s.host is not None for sample in samples() for s in sample.execution.submissions)
    for sample in samples():
        check(sample, 1)
        assert FORMAT.from_bytes(FORMAT.to_bytes(sample)) == sample


def test_records_are_frozen():
    for cls in (Executable, *RECORDS):
        for field in fields(cls):
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(object.__new__(cls), field.name, None)


def test_every_record_is_known():
    """Those that the executable's modules define are in the list that files go by."""
    known = {cls.__name__ for cls in (Executable, *RECORDS)}
    assert known == {name for name, thing in vars(executables).items()
                     if isinstance(thing, type) and hasattr(thing, "_fields")}


def changed(record, way: str, value):
    """A record with one part of it changed; `way` leads there, e.g. "weights.mapped.0.offset"."""
    name, _, rest = way.partition(".")
    if isinstance(record, tuple):
        index = int(name)
        new = changed(record[index], rest, value) if rest else value
        return (*record[:index], new, *record[index + 1:])
    new = changed(getattr(record, name), rest, value) if rest else value
    return replace(record, **{name: new})


def with_dispatch(sample: Executable) -> str:
    """The way to a dispatch."""
    commands = sample.execution.submissions[0].commands
    number = next(i for i, c in enumerate(commands) if isinstance(c, DispatchCommand))
    return f"execution.submissions.0.commands.{number}"


def cases() -> Iterator[tuple[str, object, str]]:
    """(way, value, what the error says) of things that cannot be."""
    far, dispatch = 1 << 40, "DISPATCH"
    yield "execution.storages.0.id", 7, "a storage of this number"
    yield "execution.storages.0.role", "scratch", "a storage of this number"
    yield "execution.storages.0.dtype", "float8", "a storage of this number"
    yield "execution.storages.0.nbytes", 0, "a storage of this number"
    yield "execution.storages.0.extents", (0, 1, 1), "an image of texels"
    yield "execution.blocks.0.kind", "weight", "a block of activation"
    yield "execution.blocks.0.alignment", 3, "a block of activation"
    yield "execution.blocks.0.nbytes", 0, "a block of activation"
    yield "execution.blocks.0.type_bits", 0, "a block of activation"
    yield "execution.blocks.0.places.0.storage", far, "the place of a storage"
    yield "execution.blocks.0.places.0.storage", -1, "the place of a storage"
    yield "execution.blocks.0.places.0.offset", -64, "a place of"
    yield "execution.blocks.0.places.0.offset", far, "a place of"
    yield "execution.blocks.0.places.0.nbytes", 0, "a place of"
    yield "execution.blocks", (), "memory of kind"
    yield "execution.kernels.0.shader", "no.such.shader", "no shader"
    yield "execution.kernels.0.constants", ((0, 1 << 40),), "words of 32 bits"
    yield f"{dispatch}.kernel", 1 << 20, "kernels"
    yield f"{dispatch}.kernel", -1, "kernels"
    yield f"{dispatch}.groups", (0, 1, 1), "workgroups"
    yield f"{dispatch}.groups", (far, 1, 1), "workgroups"
    yield f"{dispatch}.push_constants", (far,), "words of 32 bits"
    yield f"{dispatch}.bindings", (), "the bindings"
    yield f"{dispatch}.bindings.0.number", 9, "the bindings"
    yield f"{dispatch}.bindings.0.type", 3, "the bindings"
    yield f"{dispatch}.bindings.0.format", 44, "what"
    yield f"{dispatch}.bindings.0.range.storage", far, "bytes of a storage"
    yield f"{dispatch}.bindings.0.range.storage", -1, "bytes of a storage"
    yield f"{dispatch}.bindings.0.range.offset", far, "a part of"
    yield f"{dispatch}.bindings.0.range.offset", -16, "a part of"
    yield f"{dispatch}.bindings.0.range.nbytes", far, "a part of"
    yield f"{dispatch}.bindings.0.range.nbytes", 0, "what"
    yield "execution.submissions.0.commands.0.images", (0,), "the number of an image"
    yield "execution.submissions.0.commands.0.stages", far, "flags"
    yield "execution.inputs.0.range.nbytes", 0, "an array within"
    yield "execution.inputs.0.sizes", (far,), "an array within"
    yield "execution.inputs.0.sizes", (-1, -1), "an array within"
    yield "execution.inputs.0.dtype", "float8", "an array within"
    yield "weights.contents", (), "one content"
    yield "weights.weights.0", far, "the number of a weight"
    yield "weights.written.0.storage", -1, "the number of a weight"
    yield "weights.written.0.source", 1, "a part of one of 1 files"
    yield "weights.written.0.offset", -1, "a part of one of 1 files"
    yield "weights.written.0.nbytes", -1, "a part of one of 1 files"
    yield "weights.written.0.tail", -1, "a buffer of its bytes"
    yield "weights.mapped.0.nbytes", far, "a buffer of its bytes"
    yield "weights.prepack.batches.0.blocks", (99,), "the number of a block"
    yield "weights.prepack.batches.0.reads.0.staging_offset", far, "bytes of staging"
    yield "weights.prepack.batches.0.reads.0.zeros", -1, "bytes of staging"
    yield "weights.prepack.staging_bytes", 16, "bytes of staging"
    yield "weights.reloads.needed.0", -1, "numbers that grow"
    yield "weights.reloads.needed", (), "reloads and"
    yield "weights.reloads.reloads.0.ahead", 2, "a moment"
    yield "weights.reloads.reloads.0.after", far, "a moment"
    yield "weights.reloads.reloads.0.after", -2, "a moment"
    yield "weights.reloads", None, "no streamed weight"
    yield "weights.streamed.0.pieces.0.target", far, "a part of the weight"
    yield "weights.streamed.0.pieces.0.target_bytes", far, "a part of the weight"
    yield "weights.streamed.0.pieces.0.nbytes", -1, "a part of the weight"
    yield "weights.streamed.0.pieces", (), "pieces where"
    yield "weights.streamed.0.read.storage", 0, "the number of a weight"
    yield "states.tensors.0.range.offset", far, "a part of"
    yield "states.tensors.0.range.storage", 0, "memory of|bytes"
    yield "states.tensors.0.nbytes", far, "a tensor with its bytes"
    yield "states.tensors.0.source", 5, "a tensor with its bytes"
    yield "states.tensors.0.dtype", "float", "a tensor with its bytes"
    yield "states.blocks", (), "memory of kind"


@pytest.mark.parametrize("way, value, words", tuple(cases()), ids=lambda value: str(value)[:60])
def test_what_cannot_be(way, value, words):
    """In each sample that has such a record."""
    tried = 0
    for sample in samples():
        try:
            bad = changed(sample, way.replace("DISPATCH", with_dispatch(sample)), value)
        except (IndexError, AttributeError):  # this sample has none
            continue
        if bad == sample:
            continue
        tried += 1
        with pytest.raises(FormatError, match=words):
            check(bad, 1)
    assert tried


@pytest.mark.parametrize("number", range(4))
def test_damaged_files_with_right_checksums(number):
    """They are refused, or have one encoding; there is no error of another kind."""
    chance = random.Random(f"executables {number}")
    refused = 0
    files = [FORMAT.to_bytes(sample) for sample in samples()]
    for _ in range(500):
        data = bytearray(chance.choice(files))
        place = chance.randrange(HEADER.size, len(data) - 8) // 8 * 8
        old, = struct.unpack_from("<q", data, place)
        struct.pack_into("<q", data, place, chance.choice((
            0, 1, -1, 7, old ^ 1, (old + 64) % (1 << 62), -old if old > -(1 << 63) else 0, 1 << 31,
            (1 << 63) - 1, -(1 << 63), chance.getrandbits(62))))
        magic, version, layout, _ = HEADER.unpack_from(data)
        bad = HEADER.pack(magic, version, layout, sha256(bytes(data[HEADER.size:]))) + bytes(
            data[HEADER.size:])
        try:
            found = FORMAT.from_bytes(bad)
            check(found, 1)
        except FormatError:
            refused += 1
        else:
            assert FORMAT.to_bytes(found) == bad
    assert 200 < refused < 500
