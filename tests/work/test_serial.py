"""Work lists in files: read back equal, and refused where a byte is not what it was."""

from __future__ import annotations

import json
import math
import random
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
from vkrt.work.envelope import PREFIX_BYTES, seal
from vkrt.work.records import HostCall, Move, ReadArgument, WorkList
from vkrt.work.serial import MAGIC, STORAGES, VERSION, from_bytes, to_bytes
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Storage, Tensor

PROGRAMS = sorted({path for folder in model_folders() for path in folder.rglob("*.pte")})


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


def test_any_flipped_byte():
    data = to_bytes(sample())
    chance = random.Random(7)
    for position in (*range(PREFIX_BYTES), *chance.sample(range(PREFIX_BYTES, len(data)), 100),
                     len(data) - 1):
        damaged = bytearray(data)
        damaged[position] ^= 1 << chance.randrange(8)
        with pytest.raises(FormatError):
            from_bytes(bytes(damaged))


def test_cut_off_or_longer():
    data = to_bytes(sample())
    for length in (0, 1, len(MAGIC), PREFIX_BYTES - 1, PREFIX_BYTES, len(data) // 2, len(data) - 1):
        with pytest.raises(FormatError):
            from_bytes(data[:length])
    with pytest.raises(FormatError, match="expected"):
        from_bytes(data + b"\0")
    with pytest.raises(FormatError, match="version"):
        from_bytes(seal(MAGIC, VERSION + 1, b"{}"))


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b"NaN",
                                  b'{"storages": []}', b'{"storages": [7]}', b"1" * 100_000])
def test_json_that_cannot_be(text):
    with pytest.raises(FormatError):
        from_bytes(seal(MAGIC, VERSION, text))


@pytest.mark.parametrize("path, value, words", [
    ("storages/0/role", "texture", "do not fit"), ("storages/0/nbytes", -1, "do not fit"),
    ("storages/0/nbytes", 4, "beyond its storage"), ("storages/0/dtype", "float8", "do not fit"),
    ("storages/0/nbytes", True, "expected int"), ("storages/0/extents", [1, 2], "expected 3"),
    ("steps/0/step", "Loop", "do not fit"), ("steps/0/step", None, "do not fit"),
    ("steps/0/node", "0", "expected int"), ("steps/0/params/0", 1 << 31, "do not fit"),
    ("steps/0/params/0", 0.5, "expected int"), ("steps/0/groups", [0, 1, 1], "do not fit"),
    ("steps/0/reads/0/storage", 1 << 20, "expected the id"),
    ("steps/0/reads/0/storage", -1, "expected the id"),
    ("steps/0/reads/0/order", [7], "do not fit"), ("steps/0/reads/0/sizes/0", -1, "do not fit"),
    ("steps/0/reads/0/offset", -16, "beyond its storage"),
    ("steps/0/reads/0/dtype", "float8", "do not fit"), ("steps/0/reads/0", 7, "expected an object"),
    ("prepacks/0/constant/offset", -1, "do not fit"), ("prepacks/0/constant", None, "an object"),
    ("target/tuning/tiles/0", [1], "expected 2"), ("storage", "texture2d", "do not fit"),
    ("target", {}, "expected an object"), ("notes", "a", "expected an array"),
    ("inputs", [7], "expected an object"), ("memo", 1, "expected an object"),
])
def test_records_that_cannot_be(path, value, words):
    """The checksum is right, what it is of is not."""
    text = to_bytes(sample("conv_mix"))[PREFIX_BYTES:]
    data = thing = json.loads(text)
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in way:
        thing = thing[part]
    thing[last] = value
    with pytest.raises(FormatError, match=words):
        from_bytes(seal(MAGIC, VERSION, json.dumps(data).encode()))


@pytest.mark.parametrize("argument", [{"read": 9}, {"read": -1}, {"read": "0"}, {"float": "1"}, {}])
def test_arguments_that_cannot_be(on_host, argument):
    data = json.loads(to_bytes(sample.__wrapped__())[PREFIX_BYTES:])
    call = next(step for step in data["steps"] if step["step"] == "HostCall")
    call["args"] = [[argument]]
    with pytest.raises(FormatError):
        from_bytes(seal(MAGIC, VERSION, json.dumps(data).encode()))
