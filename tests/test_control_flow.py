"""Branches that tensors decide, loops with rounds that the file decides."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import STORAGES, calls_of, graph_of_file, open_method

from vkrt.errors import InputError
from vkrt.graph import control
from vkrt.graph.control import MOST, WHERE, ControlFlow
from vkrt.graph.graph import Graph, Node
from vkrt.graph.prims import evaluate, prim
from vkrt.graph.symbols import Symbol
from vkrt.graph.views import Writes
from vkrt.lowering.lowering import lower
from vkrt.pte import JumpFalseCall, KernelCall
from vkrt.work.host_arguments import BRANCH
from vkrt.work.limits import Read
from vkrt.work.records import HostCall
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor


def check(program, name: str) -> None:
    for inputs, expected in calls_of(name):
        for result, wanted in zip(program.run(*inputs), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["branches", "rounds", "views"])
@pytest.mark.parametrize("options", [
    *({"storage": storage} for storage in STORAGES), {"weights": "stream"}, {"order": "eager"},
    {"memory_budget": "smallest"}, {"fusions": "off"}], ids=lambda options: "-".join(
        map(str, options.values())))
def test_results(name, options, load):
    program = load(name, **options)
    check(program, name)
    assert program.memory.measured_peak == program.memory.planned_peak


def test_profile_has_every_step(load):
    (inputs, _), *_ = calls_of("branches")
    program = load("branches")
    steps = len(program.load_method("forward").work.steps)
    for clock in ("host", "auto"):
        assert len(program.profile(*inputs, clock=clock).steps) == steps


def test_a_branch_has_a_guard():
    """Each node of a branch runs under its conditions, and `where` joins them."""
    graph = graph_of_file("branches")
    predicates = {tuple(wanted for _, wanted in node.predicate) for node in graph.nodes}
    assert predicates == {(), (True,), (True, True), (True, False), (False,)}
    assert sum(node.kernel == WHERE for node in graph.nodes) == 4


# Graphs made by hand

CONDITION = Tensor((), "bool", name="condition")


def node(op: str, args: Any, out: Tensor, predicate=()) -> Node:
    return Node(op, tuple(args), (out,), predicate=predicate)


def new(dtype: str = "float32", sizes=(3, 5)) -> Tensor:
    return Tensor(sizes, dtype)


def select(a: Tensor, b: Tensor, out: Tensor) -> Node:
    return node("aten.where.self", (CONDITION, a, b), out)


def test_a_copy_that_a_branch_makes_is_not_read_outside_of_it():
    """The input is brought into the kernels' layout in both branches, since one of them alone
    runs; a copy that is made before is read by both."""
    x, a, b, out = new(), new(), new(), new()
    inside = [node("aten.sin.default", [x], a, ((CONDITION, True),)),
              node("aten.cos.default", [x], b, ((CONDITION, False),)), select(a, b, out)]

    def count(nodes: list[Node], outputs: list[Tensor]) -> int:
        graph = Graph("forward", [CONDITION, x], outputs, nodes).finish()
        return sum(not isinstance(step, HostCall) and step.shader.startswith("copy")
                   for step in lower(graph, Target()).steps)

    before = new()
    flat = [Node(n.op, n.args, n.outs) for n in inside]
    assert count(inside, [out]) == count(flat, [out]) + 2  # and one for the host to read
    first = [node("aten.exp.default", [x], before), *inside]
    assert count(first, [out, before]) == count([first[0], *flat], [out, before]) + 1


def test_branches_end_submissions():
    """One before each block and one behind; the host reads the condition before any of them."""
    x, a, b, out = new(), new(), new(), new()
    graph = Graph("forward", [CONDITION, x], [out], [
        node("aten.sin.default", [x], a, ((CONDITION, True),)),
        node("aten.cos.default", [x], b, ((CONDITION, False),)), select(a, b, out)]).finish()
    steps = lower(graph, Target(storage="texture3d")).steps
    branches = [step for step in steps if isinstance(step, HostCall)]
    assert [[wanted for _, wanted in step.args] for step in branches] == [[True], [False], []]
    assert all(step.kernel == BRANCH for step in branches)
    assert not any(o.storage.is_image for step in steps for o in (*step.reads, *step.writes))


def test_what_is_not_taken_does_not_run(device):
    """A gather with an index out of range is an error only in the branch that is taken."""
    x, index, a, b, out = new(), new("int32", (2,)), new(), new(), new()
    index.host_dtype = "int64"
    branches = [
        Node("aten::index_put.out", (x, [index], new(sizes=(5,)), False), (a,), is_host=True,
             kernel="aten::index_put.out", predicate=((CONDITION, True),)),
        node("aten.cos.default", [x], b, ((CONDITION, False),)), select(a, b, out)]
    values = branches[0].args[2]
    graph = Graph("forward", [CONDITION, x, index, values], [out], branches).finish()
    numbers = np.arange(15, dtype=np.float32).reshape(3, 5)
    row, far = np.ones(5, np.float32), np.array([0, 7])
    with open_method(graph, b"", device) as method:
        result, = method.execute([np.array(False), numbers, far, row])
        np.testing.assert_allclose(result, np.cos(numbers), atol=1e-6)
        with pytest.raises(InputError, match="index_put"):
            method.execute([np.array(True), numbers, far, row])
        result, = method.execute([np.array(True), numbers, np.array([0, 2]), row])
        np.testing.assert_array_equal(result[[0, 2]], np.ones((2, 5)))


# Numbers outside of delegates


@pytest.mark.parametrize("name, args, expected", [
    ("add", (2, 3), 5), ("sub", (2, 3.5), -1.5), ("mul", (1 << 40, 4), 1 << 42),
    ("floordiv", (-7, 2), -4), ("floordiv", (7.5, 2), 3.0), ("truediv", (7, 2), 3.5),
    ("mod", (-7, 3), 2), ("mod", ((1 << 62) + 1, 2), 1), ("mod", (7.5, 2), 1.5),
    ("eq", (2, 2.0), True), ("gt", (2, 3), False), ("lt", (2, 3), True),
    ("ge", (3, 3), True), ("le", (4, 3), False), ("sym_max", (2, 5), 5), ("sym_min", (2, 5), 2),
    ("sym_max", (2, 1.5), 2.0), ("sym_min", (1, 1.5), 1.0),
    ("neg", (3,), -3), ("sym_float", (3,), 3.0), ("ceil", (2.1,), 3), ("round", (2.5,), 2),
    ("trunc", (-2.7,), -2)])
def test_arithmetic_is_that_of_python(name, args, expected):
    result = evaluate(name, args, Symbol)
    assert (type(result), result) == (type(expected), expected)
    assert prim(f"executorch_prim::{name}.Scalar") == name


def test_arithmetic_on_symbols():
    size = Symbol("read", (Read(0, 0),), 6)
    for name, args, bound in [("floordiv", (size, 2), 3), ("truediv", (size, 4), 1.5),
                              ("neg", (size,), -6), ("sym_float", (size,), 6.0),
                              ("mod", (size, 4), 2), ("truediv", (size, 0), 1.0)]:
        made = evaluate(name, args, Symbol)
        assert isinstance(made, Symbol)
        assert (type(made.bound), made.bound) == (type(bound), bound)
    half = evaluate("truediv", (size, 2), Symbol)
    floor = evaluate("trunc", (evaluate("mul", (half, 0.9), Symbol),), Symbol)
    numbers = {size: 10, half: 5.0, floor.args[0]: 4.5}
    assert floor.evaluate(None, numbers.__getitem__, None) == 4
    assert evaluate("gt", (size, 2), Symbol) is None
    assert prim("executorch_prim::et_view") == prim("aten::add.Scalar") == ""


@pytest.mark.parametrize("name, args", [("floordiv", (1, 0)), ("add", ((1 << 63) - 1, 1)),
                                        ("ceil", (float("inf"),)), ("round", (float("nan"),)),
                                        ("mod", (1, 0)), ("mod", (1.5, 0))])
def test_arithmetic_out_of_range(name, args):
    with pytest.raises((ArithmeticError, ValueError)):
        evaluate(name, args, Symbol)


# Instructions, by a builder that only follows them


class Follower:
    """What `ControlFlow` needs of a builder."""

    def __init__(self, values):
        self.values, self.made, self.predicate = values, set(), ()
        self.unsupported, self.taken, self.added = Counter(), [], []
        self.plan = SimpleNamespace(name="forward", inputs=(), values=values)
        self.writes = Writes(self.plan)

    def find_views(self, value_ids):
        pass

    def take(self, instruction):
        self.taken.append((instruction.args[0], self.predicate))

    def add(self, op, args, outs, label, kernel=""):
        self.added.append(op)


def follow(instructions, values):
    builder = Follower(values)
    ControlFlow(builder, tuple(instructions)).walk()
    return builder


def call(number: int) -> KernelCall:
    return KernelCall(0, (number,))


def test_jumps_on_numbers_of_the_file():
    """Forwards, and as a loop that never ends."""
    done = follow([JumpFalseCall(0, 2), call(1), call(2)], [False])
    assert [number for number, _ in done.taken] == [2]
    done = follow([JumpFalseCall(0, 2), call(1), call(2)], [True])
    assert [number for number, _ in done.taken] == [1, 2]
    endless = follow([call(1), JumpFalseCall(0, 0)], [False])
    assert len(endless.taken) == MOST // 2
    assert list(endless.unsupported) == [
        f"control flow (more than {MOST:,} instructions, the rounds of loops counted)"]


@pytest.mark.parametrize("instructions, message", [
    ([call(1), JumpFalseCall(1, 0)], "a loop that a tensor ends"),
    ([JumpFalseCall(1, 0)], "a loop that a tensor ends"),
    ([JumpFalseCall(1, 3), call(1), JumpFalseCall(0, 1), call(2)], "a loop that a tensor ends"),
    ([JumpFalseCall(1, 3), JumpFalseCall(0, 5), call(1), call(2), call(3)], "out of its block"),
    ([JumpFalseCall(2, 1)], "on what is no bool"), ([JumpFalseCall(3, 1)], "on what is no bool")])
def test_jumps_that_are_refused(instructions, message):
    values = [False, Tensor((), "bool", "bool"), Tensor((), "int32", "int64"), None]
    assert any(message in text for text in follow(instructions, values).unsupported)


def test_conditions_over_many_values(monkeypatch):
    """Each copies and compares all values."""
    values = [Tensor((), "bool", "bool"), *[False] * 99]
    program = [instruction for place in range(0, 40, 2)
               for instruction in (JumpFalseCall(0, place + 2), call(place))]
    assert not follow(program, values).unsupported
    monkeypatch.setattr(control, "MOST_VALUES", 1000)
    done = follow(program, values)
    assert len(done.taken) == 10 and "too many conditions" in next(iter(done.unsupported))


def test_conditions_within_conditions():
    """Deeper than any program is refused before Python's stack ends."""
    count = 2000
    conditions = [JumpFalseCall(0, count + 1) for _ in range(count)]
    done = follow([*conditions, call(1)], [Tensor((), "bool", "bool")])
    assert len(done.taken[0][1]) == 50
    assert sum(done.unsupported.values()) == count - 50
