"""Programs in which the data decide sizes: nonzero, masks of bools, repeats."""

from types import SimpleNamespace

import numpy as np
import pytest
from support import calls_of, close_to, graph_of_file, path_of, reference_of

import vkrt
from vkrt import pte
from vkrt.errors import InputError, UnsupportedError
from vkrt.graph.counts import may_lack, read_and_written_early
from vkrt.graph.graph import Node
from vkrt.graph.symbols import Symbol
from vkrt.method.counts import Counts
from vkrt.work.limits import Count, CountFound
from vkrt.work.tensor import Tensor

NAMES = ("by_masks", "repeated", "counted_experts", "counted_by_data")
A, B = COUNTS = Count(0, 9), Count(4, 5)


def all_calls(name):
    """The calls of a program, of which the data decide other sizes each, and the first once more.
    """
    first = reference_of(f"cases/{name}")
    return [first, *calls_of(f"cases/{name}"), first]


# Without a device


class Run:
    """Runs whose data have some counts: each notes at which sizes it has begun."""

    def __init__(self, *found, refused=()):
        self.found = found
        self.refused = refused
        self.begun = []

    def begin(self, counts):
        numbers = tuple(counts.get(count, count.most) for count in COUNTS)
        if numbers in self.refused:
            raise InputError(f"no sizes {numbers}")
        self.begun.append(numbers)
        return SimpleNamespace(state=SimpleNamespace(inconsistent=True), numbers=numbers)

    def run(self, instance):
        for count, number, found in zip(COUNTS, instance.numbers, self.found):
            if number != found:
                raise CountFound(count.number, found)


def test_a_run_begins_anew_at_every_count_that_is_another():
    counts, run = Counts(COUNTS), Run(3, 2)
    instance = counts.run(run.begin, run.run)
    assert run.begun == [(9, 5), (3, 5), (3, 2)]
    assert instance.numbers == (3, 2)


def test_the_next_run_begins_at_the_counts_of_the_last():
    counts = Counts(COUNTS)
    for found, begun in (((3, 2), 3), ((3, 2), 1), ((3, 0), 2), ((3, 0), 1)):
        run = Run(*found)
        counts.run(run.begin, run.run)
        assert len(run.begun) == begun


def test_sizes_that_do_not_fit_are_guessed_otherwise():
    """Two masks are equal: no sizes go together with two numbers of places in them."""
    unequal = [(a, b) for a in range(10) for b in range(6) if a != b and (a, b) != (9, 5)]
    counts, run = Counts(COUNTS), Run(3, 3, refused=unequal)
    counts.run(run.begin, run.run)
    assert run.begun == [(9, 5), (3, 3)]
    run = Run(4, 2, refused=unequal)
    with pytest.raises(InputError, match="no sizes"):
        counts.run(run.begin, run.run)


def test_counts_that_change_by_themselves_are_refused():
    counts, run, numbers = Counts(COUNTS), Run(), iter(range(100))

    def changing(_instance):
        raise CountFound(A.number, next(numbers))

    with pytest.raises(UnsupportedError, match="count 0 of the data.* is 1 now.*random"):
        counts.run(run.begin, changing)


def test_a_method_without_counts_has_none():
    assert not Counts(())
    assert Counts(COUNTS)


def test_what_a_graph_says_of_counts():
    graph = graph_of_file("cases/repeated")
    assert graph.is_dynamic
    assert [count.most for count in graph.counts] == [12, 4]
    assert [tensor.dynamic_dims for tensor in graph.outputs] == [(0,), (0,)]
    assert all(isinstance(e, Symbol) or e.outs for e in graph.chain)


def test_one_mask_is_looked_through_once():
    """What is read and what is put by the same mask has the same places."""
    graph = graph_of_file("cases/by_masks")
    masks = [node.args[0] for node in graph.nodes if node.op == "vkrt.mask_places.default"]
    assert len(masks) == len(set(masks))


def test_other_things_that_are_missing_are_named(tmp_path):
    """A graph whose sizes nobody can work out has no counts either."""
    data = path_of("cases/by_masks").read_bytes().replace(b"masked_select", b"masked_selexx")
    path = tmp_path / "unknown.pte"
    path.write_bytes(data)
    assert "aten::masked_selexx.out" in graph_of_file(path).operator_counts()


def lacking(value_id, counted=(2,), outputs=()):
    """Of a method in which a kernel makes value 2, and a call passes it to a delegate, with value 3
    beside it, which a later kernel reads in a list."""
    plan = SimpleNamespace(outputs=outputs, values=[None] * 4 + [pte.TensorList((3,))],
                           instructions=(pte.KernelCall(0, (1, 2, 2)), pte.KernelCall(0, (1, 3, 3)),
                                         pte.DelegateCall(0, (2, 3)), pte.KernelCall(1, (4, 0))))
    return may_lack(SimpleNamespace(plan=plan, counted={*counted}), value_id)


def test_a_delegate_may_lack_what_it_was_given_for_its_size():
    assert lacking(3, counted=(2, 3))
    assert lacking(2, outputs=(2,))
    # Nothing else reads it, and its size is known.
    assert not lacking(2)
    assert not lacking(3)


def test_a_cache_that_is_read_and_then_written_is_named():
    """A run that begins anew would read the new rows."""
    old, new, other = (Tensor((2, 3), "float32", name=name) for name in ("old", "new", "other"))
    write = Node("write", (other, old), (new,))

    def named(*nodes):
        return [*read_and_written_early(nodes, lambda op: (1,) * (op == "write"))]

    assert named(write, Node("read", (new, other), ())) == []
    assert named(Node("read", (old,), ()), write) == ["old"]


# On a device


@pytest.mark.parametrize("name", NAMES)
def test_every_count_is_right(load, name, storage):
    program = load(f"cases/{name}", storage=storage)
    for _ in range(2):
        for inputs, expected in all_calls(name):
            close_to(program.run(*inputs), expected)
    assert program.memory.measured_peak <= program.memory.planned_peak


def test_the_first_call_needs_what_is_planned(load):
    """It begins at the bounds."""
    program = load("cases/by_masks")
    inputs, _ = reference_of("cases/by_masks")
    program.run(*inputs)
    assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "smallest"},
                                     {"prefer": "memory"}, {"fusions": "off"}])
def test_options(load, options):
    program = load("cases/counted_experts", **options)
    for inputs, expected in all_calls("counted_experts"):
        close_to(program.run(*inputs), expected)
    assert program.memory.measured_peak <= program.memory.planned_peak


def test_states_change_once_however_often_a_run_begins(load):
    """A row goes into a cache before the count is known, and a sum is added behind it."""
    program = load("counted")
    for _ in range(2):
        for inputs, expected in calls_of("counted", "step"):
            close_to(program.run(*inputs), expected)
        program.reset_state()


def test_ways_to_run(load):
    program = load("cases/repeated")
    (inputs, expected), (others, sizes), *_ = all_calls("repeated")
    assert program.run_async(*inputs).done()
    close_to(program.run_async(*others).result(), sizes)
    arrays = [np.empty_like(array) for array in expected]
    for result, array in zip(program.run(*inputs, out=arrays), arrays, strict=True):
        assert result is array
    close_to(arrays, expected)
    with pytest.raises(InputError, match="out|output"):
        program.run(*others, out=arrays)
    assert "repeat_interleave" in str(program.profile(*inputs))


def test_what_the_program_does_not_allow_is_refused(load):
    program = load("cases/repeated")
    (x, times), _ = reference_of("cases/repeated")
    with pytest.raises(InputError, match=r"count 0 of the data is 20.*no more than \[12\]"):
        program.run(x, np.full_like(times, 5))
    with pytest.raises(InputError, match="repeats of -1"):
        program.run(x, np.full_like(times, -1))
    close_to(program.run(x, times), reference_of("cases/repeated")[1])


@pytest.mark.driver
def test_compiled_programs_have_sizes_that_are_known(tmp_path):
    with pytest.raises(UnsupportedError, match="decides sizes"):
        vkrt.compile(path_of("cases/repeated"), tmp_path / "x.vkx")
