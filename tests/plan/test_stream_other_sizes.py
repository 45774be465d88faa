"""One plan of reloads for all sizes: where its submissions begin in other command lists."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from plan_samples import Maker
from streamed_sizes import check, planned
from support import graph_of_file

from vkrt.dynamic.resolve import resolve
from vkrt.errors import UnsupportedError
from vkrt.lowering.lowering import lower
from vkrt.plan.stream.other_sizes import submissions_at, weight_reads
from vkrt.work.command_list import CommandList
from vkrt.work.records import Dispatch, HostCall
from vkrt.work.target import Target


@pytest.fixture(scope="module")
def graph():
    return graph_of_file("conv-dyn")


@pytest.fixture(scope="module")
def streamed(graph):
    """The command list at the bounds, and its plan."""
    work = lower(graph, Target())
    return work, planned(work)


def test_the_same_command_list_has_the_same_submissions(streamed):
    work, made = streamed
    assert len(made.stream.submissions) > 3
    assert check(made, work) == made.submissions


@pytest.mark.parametrize("sizes", [(16, 16), (18, 22), (28, 38)])
def test_other_sizes(graph, streamed, sizes):
    work, made = streamed
    check(made, lower(resolve(graph, [(1, 3, *sizes)]), work.target, work))


def turned_round(work: CommandList) -> CommandList:
    """The steps in the opposite order; those of the host are in the middle."""
    steps = [s for s in work.steps[::-1] if not isinstance(s, HostCall)]
    calls = [s for s in work.steps if isinstance(s, HostCall)]
    steps[len(steps) // 2:len(steps) // 2] = calls
    return replace(work, steps=tuple(steps))


def test_weights_in_another_order(streamed):
    """A plan that knows of it lets them stay, one that does not refuses it."""
    work, made = streamed
    turned = turned_round(work)
    with pytest.raises(UnsupportedError, match=r"cannot be streamed.*larger memory_budget"):
        submissions_at(made.stream, made.placements, turned)
    assert planned(replace(work, other_sizes=(weight_reads(turned),))).stream is None


def random_steps(chance: random.Random, weights, make: Maker) -> None:
    """Steps that read weights, most of them in order, and calls of the host."""
    order = sorted(range(len(weights)), key=lambda w: w + chance.choice([0, 0, 0, 3, 9])
                   * chance.random())
    at, value = 0, make.input(16)
    while at < len(order):
        count = chance.choice([0, 1, 1, 1, 2, 3])
        read = [weights[number] for number in order[at:at + count]]
        at += count
        if chance.random() < 0.15:
            read.append(chance.choice(weights))
        out = make.temporary(16)
        if chance.random() < 0.1:
            make.host_call([out], [value])
        else:
            make.step([out], [value, *dict.fromkeys(read)])
        value = out
    make.output(value)


@pytest.mark.parametrize("seed", range(40))
def test_sizes_that_read_weights_in_any_order(seed):
    """Each of them in several steps, or all at once, and with the host's work anywhere."""
    chance = random.Random(seed)
    first = Maker()
    weights = [first.weight(16 * chance.randint(1, 40)) for _ in range(chance.randint(4, 30))]
    random_steps(chance, weights, first)
    works = [first.work]
    for _ in range(3):
        make = Maker()
        make.storages.items.extend(first.work.storages)
        random_steps(chance, weights, make)
        works.append(replace(make.work, prepacks=first.work.prepacks))
    known = replace(works[0], other_sizes=tuple(map(weight_reads, works[1:])))
    for lookahead in (0, 1, 3):
        made = planned(known, lookahead)
        if made.stream is not None:
            for work in works:
                check(made, work)


def test_random_orders_are_streamed():
    """Or the test above would say little; and what one size alone needs takes no more."""
    chance, counts = random.Random(1), []
    for _ in range(10):
        make = Maker()
        weights = [make.weight(16 * chance.randint(1, 40)) for _ in range(20)]
        random_steps(chance, weights, make)
        alone = planned(make.work)
        same = planned(replace(make.work, other_sizes=(weight_reads(make.work),)))
        assert same.stream == alone.stream
        counts.append(len(alone.stream.streamed) if alone.stream else 0)
    assert sum(count > 10 for count in counts) > 5


def read_twice(work):
    """Command lists whose last kernel reads the weight of an earlier one too, each with the step of
    that one and the operand."""
    last = max(i for i, step in enumerate(work.steps) if isinstance(step, Dispatch))
    for number, step in enumerate(work.steps[:last]):
        for operand in step.reads if number else ():
            if operand.storage.role == "weight":
                steps = list(work.steps)
                steps[last] = replace(steps[last], reads=(*steps[last].reads, operand))
                yield replace(work, steps=tuple(steps)), number, operand


def test_a_weight_that_other_sizes_read_later(graph):
    """Its submission is empty then, and the next ones begin where they have to."""
    tried = 0
    for base, number, operand in read_twice(lower(graph, Target())):
        made = planned(base)
        assert made.stream is not None
        waits = [[made.placements.weight_table[i].storage for i in submission.waits]
                 for submission in made.stream.submissions]
        place = next((i for i, each in enumerate(waits) if each == [operand.storage.id]), 0)
        if not 0 < place < len(waits) - 1:
            continue
        steps = list(base.steps)
        steps[number] = replace(steps[number], reads=tuple(
            read for read in steps[number].reads if read is not operand))
        found = check(made, replace(base, steps=tuple(steps)))
        assert found[place][0] == found[place][1]
        tried += 1
    assert tried
