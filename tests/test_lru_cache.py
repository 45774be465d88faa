"""What a method keeps from run to run: bounded by bytes, at the bound and one beyond it."""

import numpy as np
import pytest
from host_buffers import HostBuffers, hosted
from support import same_bits

from vkrt.method import instances
from vkrt.method.lru_cache import LruCache
from vkrt.runtime.external import LEAST


def filled(max_bytes, *sizes):
    cache = LruCache(max_bytes)
    for number, nbytes in enumerate(sizes):
        for key, _ in cache.excess(nbytes):
            cache.remove(key)
        cache.add(number, f"value {number}", nbytes)
    return cache


def test_as_many_as_there_is_room_for():
    assert len(filled(100, *[10] * 10)) == 10
    assert [key for key, _ in filled(100, *[10] * 11)] == list(range(1, 11))
    # A large one takes the place of several.
    assert [key for key, _ in filled(100, *[10] * 10, 20)] == list(range(2, 11))


def test_some_stay_whatever_their_bytes():
    assert len(filled(0, *[10] * LEAST)) == LEAST
    assert [key for key, _ in filled(0, *[10] * (LEAST + 1))] == list(range(1, LEAST + 1))


def test_what_was_used_longest_ago_goes():
    cache = filled(0, *[10] * LEAST)
    assert cache.get(0) == cache.get(0) == "value 0"
    assert cache.get("none") is None
    assert [key for key, _ in cache.excess(10)] == [1]
    cache.remove(1)
    cache.add(1, "again", 10)
    assert [key for key, _ in cache] == [*range(2, LEAST), 0, 1]


# States


@pytest.mark.parametrize("kept", [False, True], ids=["planned", "cached plan"])
@pytest.mark.parametrize("count", [LEAST - 1, LEAST, LEAST + 1])
@pytest.mark.usefixtures("any_age")
def test_a_method_outlives_its_further_states(count, kept, load, tmp_path, monkeypatch):
    """Also where their instances were so many that its own had to go."""
    monkeypatch.setattr(instances, "MAX_BYTES", 0)
    x = np.ones((1, 6), np.float32)
    options = {"plan_cache": tmp_path} if kept else {}
    if kept:
        load("buffers", **options).close()
        assert list(tmp_path.iterdir())
    program = load("buffers", **options)
    expected = [program.run(x) for _ in range(2)]
    program.reset_state()
    states = [program.new_state() for _ in range(count)]
    for state in states:
        same_bits(program.run(x, state=state), expected[0])
    for state in states:
        state.close()
    for wanted in expected:
        same_bits(program.run(x), wanted)


def test_a_ninth_state_costs_what_the_others_do(load, work_done):
    x = np.ones((1, 6), np.float32)
    program = load("buffers")
    expected = [program.run(x) for _ in range(3)]
    program.reset_state()
    states = [None, *(program.new_state() for _ in range(2 * LEAST))]
    for state in states:
        same_bits(program.run(x, state=state), expected[0])
    work_done.clear()
    for wanted in expected[1:]:
        for state in states:
            same_bits(program.run(x, state=state), wanted)
    assert work_done == []
    kept = program._methods["forward"]._loaded.instances
    assert len(list(kept)) == len(states)
    for state in states[1:]:
        state.close()
    assert len(list(kept)) == 1


# Buffers of the host's


@pytest.mark.driver
@pytest.mark.parametrize("count", [LEAST - 1, LEAST, LEAST + 1])
def test_a_method_outlives_its_buffers(count, monkeypatch, work_done):
    """Instances over buffers take the place of no others, also where they are many."""
    monkeypatch.setattr(instances, "MAX_BUFFER_BYTES", 0)
    with hosted("mlp") as (host, program):
        info, = program.metadata().inputs
        x = np.ones(info.sizes, np.float32)
        expected = program.run(x)
        for _ in range(count):
            made = HostBuffers(host, expected)
            program.run(x, out=made.buffers)
            made.check()
        kept = program._methods["forward"]._loaded.instances
        assert len(list(kept)) == 1 + min(count, LEAST)
        work_done.clear()
        same_bits(program.run(x), expected)
        assert work_done == []
        program.release_buffers()
        assert len(list(kept)) == 1
        same_bits(program.run(x), expected)
