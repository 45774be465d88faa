"""Executables of every program: made without a driver, sound, and the same from a file."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import FrozenInstanceError

import pytest
from dealing import STORAGES
from program_samples import (
    changed,
    executable_of,
    graphs,
    is_refused,
    modules_of,
    planned_in,
    program_of,
    samples,
    target,
    with_checksum,
)
from support import model_folders

from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable import executable as executables
from vkrt.executable import flat, rows
from vkrt.executable.executable import RECORDS, Executable
from vkrt.executable.records import DispatchCommand
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol
from vkrt.lowering.lowering import lower
from vkrt.work.tensor import Tensor

PROGRAMS = sorted({path for folder in model_folders() for path in folder.rglob("*.pte")})
# As many files as a program may have here
SOURCES = 8


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
            data = rows.to_bytes(program_of(made))
            found = flat.File(data, SOURCES, 0).read()
            assert executable_of(found) == made
            assert rows.to_bytes(found) == data
        assert contents(graph) == before


def test_samples_have_everything():
    weights = [sample.weights for sample in samples()]
    for name in ("mapped", "written", "streamed"):
        assert any(getattr(plan, name) for plan in weights), name
    assert any(plan.prepack.batches for plan in weights)
    assert any(streamed.pieces for plan in weights for streamed in plan.streamed)
    assert any(sample.states.tensors for sample in samples())
    assert any(s.host is not None for sample in samples() for s in sample.execution.submissions)
    for sample in samples():
        assert executable_of(flat.File(rows.to_bytes(program_of(sample)), 1, 0).read()) == sample


def test_records_are_frozen():
    for cls in (Executable, *RECORDS):
        for name in cls.__match_args__:
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(cls(*cls.__match_args__), name, None)


def test_every_record_is_known():
    """Those that the executable's modules define are in the list that files go by."""
    known = {cls.__name__ for cls in (Executable, *RECORDS)}
    assert known == {name for name, thing in vars(executables).items()
                     if isinstance(thing, type) and hasattr(thing, "__match_args__")}


def with_dispatch(sample: Executable) -> str:
    """The way to a dispatch."""
    commands = sample.execution.submissions[0].commands
    number = next(i for i, c in enumerate(commands) if isinstance(c, DispatchCommand))
    return f"execution.submissions.0.commands.{number}"


def cases() -> Iterator[tuple[str, object, str]]:
    """(way, value, what the error says) of things that cannot be."""
    far, dispatch = 1 << 40, "DISPATCH"
    yield "execution.storages.0.id", 7, "a storage of this number"
    yield "execution.storages.0.nbytes", 0, "bytes of a storage"
    yield "execution.storages.0.extents", (0, 1, 1), "an image of texels"
    yield "execution.storages.0.extents", (1, 1 << 32, 1), "an image of texels"
    yield "execution.blocks.0.kind", "weight", "another kind of block"
    yield "execution.blocks.0.alignment", 3, "a power of two"
    yield "execution.blocks.0.nbytes", 0, "bytes of a block"
    yield "execution.blocks.0.type_bits", 0, "memory types"
    yield "execution.blocks.0.places.0.storage", far, "the place of a storage"
    yield "execution.blocks.0.places.0.storage", -1, "the place of a storage"
    yield "execution.blocks.0.places.0.offset", -64, "a place of"
    yield "execution.blocks.0.places.0.offset", far, "a place of"
    yield "execution.blocks.0.places.0.nbytes", 0, "a place of"
    yield "execution.blocks", (), "that has memory"
    yield "execution.kernels.0.shader", "no.such.shader", "a module, not no.such.shader"
    yield "execution.kernels.0.constants", ((0, 1 << 40),), "words of 32 bits"
    yield f"{dispatch}.kernel", 1 << 20, "kernels"
    yield f"{dispatch}.kernel", -1, "kernels"
    yield f"{dispatch}.groups", (0, 1, 1), "workgroups"
    yield f"{dispatch}.groups", (far, 1, 1), "workgroups"
    yield f"{dispatch}.push_constants", (far,), "push constants of 32 bits"
    yield f"{dispatch}.push_constants", (0,) * 33, "32 push constants at most"
    yield f"{dispatch}.bindings", (), "the bindings"
    yield f"{dispatch}.bindings.0.number", 9, "the bindings"
    yield f"{dispatch}.bindings.0.type", 3, "the bindings"
    yield f"{dispatch}.bindings.0.format", 44, "what"
    yield f"{dispatch}.bindings.0.range.storage", far, "the number of a storage"
    yield f"{dispatch}.bindings.0.range.storage", -1, "the number of a storage"
    yield f"{dispatch}.bindings.0.range.offset", far, "a part of"
    yield f"{dispatch}.bindings.0.range.offset", -16, "a part of"
    yield f"{dispatch}.bindings.0.range.nbytes", far, "a part of"
    yield f"{dispatch}.bindings.0.range.nbytes", 0, "what"
    yield "execution.submissions.0.commands.0.images", (0,), "the number of an image|has memory"
    yield "execution.submissions.0.commands.0.stages", far, "flags"
    yield "execution.inputs.0.range.nbytes", 0, "an array within"
    yield "execution.inputs.0.sizes", (far,), "an array within"
    yield "execution.inputs.0.sizes", (-1, -1), "an array within"
    yield "weights.contents", (), "one content"
    yield "weights.weights.0", far, "the number of a weight"
    yield "weights.written.0.storage", -1, "the number of a weight"
    yield "weights.written.0.source", 1, "a part of one of 1 files"
    yield "weights.written.0.offset", -1, "a part of a file"
    yield "weights.written.0.nbytes", -1, "a part of a file"
    yield "weights.written.0.tail", -1, "a buffer of its bytes"
    yield "weights.written.0.copy.itemsize", 3, "elements of 3 bytes"
    yield "weights.written.0.copy.params.5", far, "PACKED|COUNT"
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
    yield "states.tensors.0.range.storage", 0, "memory of|has memory"
    yield "states.tensors.0.nbytes", far, "the tensor's elements"
    for places in (-1, far):
        yield "states.tensors.0.places", places, "0 to .*, as many as the tensor has elements"
    yield "states.tensors.0.source", 5, "a part of one of 1 files"
    yield "states.blocks", (), "that has memory"


def check_refused(bad: Executable, sample: Executable, words: str) -> None:
    """A file of what cannot be is refused; its modules are those of the sample that it was."""
    with pytest.raises(FormatError, match=words):
        flat.File(rows.to_bytes(program_of(bad, modules_of(sample))), 1, 0)


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
        check_refused(bad, sample, words)
    assert tried


def test_weights_that_are_not_listed():
    """What lies in a block is made before it; only the listed weights are."""
    tried = 0
    for sample in samples():
        listed = sample.weights.weights
        placed = {place.storage for block in sample.weights.blocks for place in block.places}
        if len(listed) > 1 and listed[1] in placed:
            check_refused(changed(sample, "weights.weights.1", listed[0]), sample,
                          "every weight that has memory")
            tried += 1
    assert tried


def test_batches_write_what_is_allocated():
    """The blocks for a batch, and those with weights that the host writes, are there; no others."""
    tried = 0
    for sample in samples():
        if sample.weights.prepack.batches and not sample.weights.written:
            check_refused(changed(sample, "weights.prepack.batches.0.blocks", ()), sample,
                          "that has memory")
            tried += 1
    assert tried


@pytest.mark.parametrize("number", range(4))
def test_damaged_files_with_right_checksums(number):
    """They are refused, or have one encoding; there is no error of another kind."""
    chance = random.Random(f"executables {number}")
    refused = 0
    files = [rows.to_bytes(program_of(sample)) for sample in samples()]
    for _ in range(2500):
        data = bytearray(chance.choice(files))
        place = chance.randrange(flat.HEADER_BYTES, len(data) - 8) // 8 * 8
        old, = struct.unpack_from("<q", data, place)
        struct.pack_into("<q", data, place, chance.choice((
            0, 1, -1, 7, old ^ 1, (old + 64) % (1 << 62), -old if old > -(1 << 63) else 0, 1 << 31,
            (1 << 63) - 1, -(1 << 63), chance.getrandbits(62))))
        refused += is_refused(with_checksum(bytes(data)))
    assert 1000 < refused < 2500
