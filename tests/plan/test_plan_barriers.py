"""Barriers: all that are needed and no other, against a checker that compares byte by byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_samples import Maker, bytes_of, exact_requirements, hazard, random_work
from properties import examples

from vkrt.plan.barriers import Ranges, barriers, transitions
from vkrt.plan.plan import plan
from vkrt.work.records import HostCall


def both(work, **options):
    result = plan(work, exact_requirements, **options)
    needed = barriers(work, result)
    return needed, transitions(work, result, needed)


def program(steps: str, outputs: str) -> Maker:
    """A command list of 64 bytes for each letter.

    Args:
        steps: with what they write and read, such as "a<x b<xa"; "!" in front of those that the
            host does. "x" is an input, "w" and "W" are weights, large letters are images.
    """
    make = Maker()
    operands = {"x": make.input(64)}
    for step in steps.split():
        for name in filter(str.isalpha, step.partition("<")[2] + step):
            if name not in operands:
                new = make.weight if name in "wW" else make.temporary
                operands[name] = new(64, image=name.isupper())
        writes, reads = ([operands[name] for name in part] for part in step.strip("!").split("<"))
        (make.host_call if step[0] == "!" else make.step)(writes, reads)
    for name in outputs:
        make.output(operands[name])
    return make


@pytest.mark.parametrize(("steps", "outputs", "needed"), [
    pytest.param("a<x b<a c<b", "c", "011", id="each of a chain"),
    pytest.param("a<x b<x c<x d<x e<abcd", "e", "00001", id="none of independent steps"),
    pytest.param("a<x b<x c<a d<ba", "cd", "0010", id="one for both branches"),
    # Nothing has read x since the barrier.
    pytest.param("a<x a<a x<", "a", "010", id="in place"),
    pytest.param("a<x x<", "ax", "01", id="write after read"),
    # d takes the memory of a, which the step before still reads.
    pytest.param("a<x b<x c<a d<b", "cd", "0011", id="memory of another branch"),
    pytest.param("a<xw b<xw", "ab", "00", id="none of weights"),
    pytest.param("a<x !b<a y<ba", "y", "000", id="host calls order everything"),
    pytest.param("y<xW", "y", "0", id="images of weights are the prepack's business")])
def test_which_steps_need_one(steps, outputs, needed):
    assert both(program(steps, outputs).work) == (tuple(n == "1" for n in needed), {})


def test_parts_of_a_buffer_are_independent(make):
    x, whole = make.input(64), make.temporary(128)
    low, high = make.operand(whole.storage, 0, 64), make.operand(whole.storage, 64, 64)
    make.step([low], [x])
    make.step([high], [x])
    make.output(whole)
    assert both(make.work)[0] == (False, False)
    make.step([make.operand(whole.storage, 48, 32)], [])
    assert both(make.work)[0] == (False, False, True)


def test_what_is_empty_is_bound_all_the_same(make):
    """Nothing is read of it, but who binds its first bytes may: layers of validation say so."""
    x, a = make.input(64), make.temporary(64)
    make.step([a], [make.operand(x.storage, 0, 0)])
    make.step([make.operand(x.storage, 0, 16)], [])
    make.step([make.operand(x.storage, 32, 16)], [make.operand(x.storage, 48, 0)])
    make.output(a)
    assert both(make.work)[0] == (False, True, True)


def test_memory_of_another_tenant(make):
    """The third step writes where the first read: only the arena knows."""
    x, a, b = make.input(1024), make.temporary(16), make.temporary(1024)
    make.step([a], [x])
    make.step([b], [])
    make.output(a)
    make.output(b)
    result = plan(make.work, exact_requirements)
    assert result.activation_bytes == 1040
    assert barriers(make.work, result) == (False, True)


def test_images_join_the_barrier_before_them():
    needed, moved = both(program("A<x B<x C<A D<B z<ABCD !y< E<y", "").work)
    assert needed == (False, False, True, False, True, False, False)
    assert {step: len(ids) for step, ids in moved.items()} == {0: 2, 2: 2, 6: 1}


def test_a_transition_writes(make):
    """An image that is read before anything wrote it: its memory is another tenant's until then."""
    x, a, b = make.input(1024), make.temporary(16), make.temporary(16)
    image = make.temporary(1024, image=True)
    make.step([a], [x])
    make.step([b], [image])
    make.output(a)
    make.output(b)
    assert both(make.work) == ((False, True), {1: (image.storage.id,)})


@examples(60)
@given(st.integers(0, 10 ** 6), st.booleans(), st.booleans())
def test_against_brute_force(seed, images, unified):
    """All images of `random_work` are written first, so no transition adds a hazard."""
    work = random_work(seed, steps=30, images=images)
    result = plan(work, exact_requirements, unified=unified)
    needed = barriers(work, result)
    moved = transitions(work, result, needed)
    last = 0
    earliest = []  # for each step the first one that may run at the same time
    for index, step in enumerate(work.steps):
        if isinstance(step, HostCall):
            assert not needed[index]
            last = index + 1
        else:
            found = any(hazard(result, work.steps[i], step) for i in range(last, index))
            assert needed[index] == found
            if found:
                last = index
        earliest.append(last)
    images_seen = set()
    first = {}
    for index, step in enumerate(work.steps):
        for operand in (*step.writes, *step.reads):
            if operand.storage.is_image:
                first.setdefault(operand.storage.id, (index, operand))
    for where, ids in moved.items():
        assert where == 0 or needed[where] or isinstance(work.steps[where - 1], HostCall)
        for storage in ids:
            assert storage not in images_seen
            images_seen.add(storage)
            index, operand = first[storage]
            assert earliest[index] == where
            for step in work.steps[where:index]:
                assert not any(bytes_of(result, other) & bytes_of(result, operand)
                               for other in (*step.writes, *step.reads))
    assert images_seen == set(first)


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 9)), max_size=15),
       st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 9)))
def test_ranges(added, asked):
    ranges, naive = Ranges(), set()
    for block, start, length in added:
        ranges.add((block, start, start + length))
        naive |= {(block, byte) for byte in range(start, start + length)}
    block, start, length = asked
    expected = any((block, byte) in naive for byte in range(start, start + length))
    assert ranges.overlap((block, start, start + length)) == expected
    ranges.clear()
    assert not ranges.overlap((block, start, start + length))


@pytest.mark.parametrize("count", [2000])
def test_many_independent_steps_are_fast(make, count):
    x = make.input(64)
    for _ in range(count):
        make.output(make.temporary(64))
        make.step([make.work.outputs[-1]], [x])
    result = plan(make.work, exact_requirements)
    assert barriers(make.work, result) == (False,) * count
