"""Work lists as JSON: read back equal, and refused where a value is not what it may be."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import FrozenInstanceError, fields, replace
from functools import cache

import pytest
from support import MODELS, model_folders

from vkrt.description import Description
from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import Symbol
from vkrt.ops.lowering import lower
from vkrt.ops.resolving import resolve
from vkrt.work import codec
from vkrt.work.codec import parsed, text_of
from vkrt.work.records import HostCall, Move, ReadArgument, WorkList
from vkrt.work.serial import STORAGES, WorkListSchema
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Storage, Tensor

PROGRAMS = sorted({path for folder in model_folders() for path in folder.rglob("*.pte")})


def to_bytes(work: WorkList) -> bytes:
    return text_of(WorkListSchema().write(work))


def from_bytes(data: bytes) -> WorkList:
    return WorkListSchema().read(parsed(data))


def target(storage: str) -> Target:
    return Target(storage, max_texels=1 << 26, max_image_extent=2048, scratch="spare")


def graphs(path) -> list[Graph]:
    data = sorted(path.parent.glob(f"{path.stem}*.ptd"))
    with closing(Description(str(path), data)) as description:
        return [description.graph(name) for name in description.method_names]


def contents(graph: Graph) -> list[str]:
    """Everything a graph is made of, down to the last attribute."""
    things = [graph, *graph.nodes, *graph.chain, *graph.states]
    things += [t for node in graph.nodes for t in (*node.tensors(), *node.outs)]
    things += [value for value in (*graph.inputs, *graph.outputs) if isinstance(value, Tensor)]
    return [repr([(name, repr(value), id(value) if isinstance(value, (Tensor, Node)) else 0)
                  for name, value in sorted(vars(thing).items())])
            for thing in things if isinstance(thing, (Graph, Node, Symbol, Tensor))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_round_trip(path):
    """Of every method in every storage, also at smaller sizes; and lowering changes no graph."""
    try:
        methods = graphs(path)
    except (FormatError, UnsupportedError):
        pytest.skip("no graph can be made of it")
    for graph in methods:
        before = contents(graph)
        for storage in STORAGES:
            try:
                work = lower(graph, target(storage))
            except UnsupportedError:
                break
            data = to_bytes(work)
            found = from_bytes(data)
            assert found == work and found.memo is None
            assert to_bytes(found) == data
            assert work.memo is not None
        assert contents(graph) == before


@cache
def sample(name: str = "places") -> WorkList:
    graph, = graphs(MODELS / f"{name}.pte")
    return lower(graph, target("texel"))


def test_a_work_list_at_other_sizes():
    """It has the weights of another one, and is complete by itself."""
    graph, = graphs(MODELS / "attention-dyn.pte")
    base = lower(graph, target("texel"))
    sizes = [t.sizes if not t.dynamic_dims else tuple(
        n - 1 if d in t.dynamic_dims else n for d, n in enumerate(t.sizes)) for t in graph.inputs]
    other = lower(resolve(graph, sizes), base.target, base)
    assert other != base and other.prepacks == base.prepacks
    assert from_bytes(to_bytes(other)) == other


def test_what_models_do_not_have():
    """Numbers that JSON lacks, nested arguments, moves, numbers as outputs."""
    storages = Storage(0, "activation", 64, "float32"), Storage(1, "spill", 64, "float32")
    a, b = (Operand(storage, (16,), "float32", (0,), raw=True) for storage in storages)
    call = HostCall(0, "aten::clamp.out", (ReadArgument(0), math.inf, -math.inf, None, True, 3, 2.0,
                                           "none", ((1, 2), (ReadArgument(0),))), (a,), (a,))
    work = WorkList(storages, steps=(call, Move(1, "spill", (b,), (a,))), inputs=(None, a),
                    outputs=(3, 2.5, math.inf, b), notes=("a note: \u201c\u00e4\u201d",))
    assert from_bytes(to_bytes(work)) == work
    found = from_bytes(to_bytes(replace(work, outputs=(math.nan, True, None))))
    assert math.isnan(found.outputs[0]) and found.outputs[1:] == (True, None)
    able = replace(work, target=Target(features=frozenset(("subgroups", "dot"))))
    assert from_bytes(to_bytes(able)) == able != work
    # A number stays of its type.
    assert [type(value) for value in from_bytes(to_bytes(work)).outputs[:2]] == [int, float]


def test_records_are_frozen():
    work = sample()
    records = [work, work.storages[0], work.steps[0], work.steps[0].writes[0], work.target]
    records += [step for step in work.steps if isinstance(step, HostCall)][:1]
    for record in records:
        for field in fields(record):
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(record, field.name, None)
            assert not isinstance(getattr(record, field.name), (list, dict, set))


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b"NaN",
                                  b"[[], [], []]", b"[[7], [], []]", b"1" * 100_000])
def test_json_that_cannot_be(text):
    with pytest.raises(FormatError):
        from_bytes(text)


# Places in [storages, operands, work list]; records are arrays of their attributes
STORAGE, OPERAND, STEP, PREPACK = (0, 0), (1, 0), (2, 2, 0), (2, 1, 0)


@pytest.mark.parametrize("way, value, words", [
    ((*STORAGE, 0), "texture", "one of weight"), ((*STORAGE, 1), -1, "an integer from 0"),
    ((*STORAGE, 1), 4, "beyond its storage"), ((*STORAGE, 2), "float8", "one of float32"),
    ((*STORAGE, 1), True, "an integer"), ((*STORAGE, 3), [1, 2], "an array of 3"),
    ((*STEP, 0), "Loop", "one of Dispatch"), ((*STEP, 0), None, "one of Dispatch"),
    ((*STEP, 0), "HostCall", "HostCall"), ((*STEP, 1, 0), "0", "an integer"),
    ((*STEP, 1, 2, 0), 1 << 31, "integers from"), ((*STEP, 1, 2, 0), 0.5, "integers from"),
    ((*STEP, 1, 2), [0] * 33, "do not fit"), ((*STEP, 1, 7), [0, 1, 1], "an integer from 1"),
    ((*STEP, 1, 4, 0), 1 << 20, "the place of one"), ((*STEP, 1, 4, 0), -1, "the place of one"),
    ((*OPERAND, 0), 1 << 20, "the id of one"), ((*OPERAND, 3), [7], "do not fit"),
    ((*OPERAND, 1, 0), -1, "integers from 0"), ((*OPERAND, 6), -16, "an integer from 0"),
    ((*OPERAND, 6), 1 << 40, "beyond its storage"), ((*OPERAND, 2), "float8", "one of"),
    (OPERAND, 7, "an array of 8"), ((*PREPACK, 0, 0), -1, "an integer from 0"),
    ((*PREPACK, 0), None, "an array of 7"), ((2, 7, 11, 0, 0), [1], "an array of 2"),
    ((2, 6), "texture2d", "one of texel"), ((2, 7), {}, "an array of 14"),
    ((2, 8), "a", "an array"), ((2, 3), [7777], "the place of one"),
    ((2, 9), [[1 << 20]], "do not fit"), ((2, 0), [], "null"),
], ids=str)
def test_records_that_cannot_be(way, value, words):
    data = thing = json.loads(to_bytes(sample("conv_mix")))
    *places, last = way
    for place in places:
        thing = thing[place]
    thing[last] = value
    with pytest.raises(FormatError, match=words):
        WorkListSchema().read(data)


@pytest.mark.parametrize("argument", [{"read": 9}, {"read": -1}, {"read": "0"}, {"float": "1"}, {},
                                      {"__class__": 1}, 1 << 64])
def test_arguments_that_cannot_be(on_host, argument):
    data = json.loads(to_bytes(sample.__wrapped__()))
    call = next(step for step in data[2][2] if step[0] == "HostCall")
    call[1][2] = [[argument]]
    with pytest.raises(FormatError):
        WorkListSchema().read(data)


def test_a_schema_is_as_the_class_declares():
    """Attributes that a class has more, or of another type, are a fault of vkrt."""
    whole = codec.integer(0, 9)
    codec.record(ReadArgument, read=whole)
    for attributes in ({}, {"read": codec.TEXT}, {"read": codec.optional(whole)},
                       {"read": whole, "write": whole}, {"other": whole}):
        with pytest.raises(AssertionError, match="ReadArgument declares"):
            codec.record(ReadArgument, **attributes)
