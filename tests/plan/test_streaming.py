"""Streaming plans: where every reload, wait and release is, for small programs worked by hand."""

from dataclasses import replace

import pytest
from stream_samples import Program, check, in_sequence, program, starts, sync_points

from vkrt.errors import InputError
from vkrt.plan.stream import streaming
from vkrt.plan.stream.pool import Candidate, arrange
from vkrt.plan.stream.records import Cost, Release, Reload, Submission, Wait
from vkrt.plan.stream.streamed_sets import Family, StreamedSet, sets_once
from vkrt.plan.stream.streaming import plan_stream

TWELVE = in_sequence(*[64] * 12)


def places(plan) -> list[int]:
    """The offsets in the order of the waits."""
    return [plan.offsets[weight] for weight in plan.streamed]


def moments(plan) -> list[tuple[int, int]]:
    """(ahead, after) of the reloads in the order of the waits."""
    return [(reload.ahead, reload.after) for reload in plan.reloads]


# Positions


def test_equal_weights_take_turns_in_two_places():
    plan = TWELVE.checked_plan(128, 1)
    assert plan.streamed == tuple(range(12)) and plan.resident == ()
    assert plan.submissions == tuple(Submission(i, i + 1, (i,)) for i in range(12))
    a, b = places(plan)[:2]
    assert {a, b} == {0, 64} and places(plan) == [a, b] * 6
    # Each starts when the one before it is waited for; the first two in the run before.
    assert moments(plan) == [(1, 10), (1, 11), *((0, k - 2) for k in range(2, 12))]
    assert (plan.pool_bytes, plan.peak_bytes, plan.bytes_per_run) == (128, 128, 768)


def test_records_in_order():
    """All that happens in a run of three equal weights, two places between them."""
    plan = in_sequence(64, 64, 64, 64).plan(128, lookahead=1)
    assert plan.records == (
        Wait(0, 0), Release(0, 0), Reload(2, 0, 0),
        Wait(1, 1), Release(1, 1), Reload(3, 0, 1),
        Wait(2, 2), Release(2, 2), Reload(0, 1, 2),
        Wait(3, 3), Release(3, 3), Reload(1, 1, 3))
    assert plan.reloads == (Reload(0, 1, 2), Reload(1, 1, 3), Reload(2, 0, 0), Reload(3, 0, 1))


def test_no_look_ahead():
    plan = TWELVE.checked_plan(64, 0)
    assert places(plan) == [0] * 12 and plan.pool_bytes == 64
    # The first is issued when the run begins: nothing is transferred while another run computes.
    assert moments(plan) == [(0, k - 1) for k in range(12)]
    assert plan.records[0] == Reload(0, 0, -1)


def test_a_look_ahead_of_two():
    plan = TWELVE.checked_plan(192, 2)
    assert plan.pool_bytes == 192 and plan.lookahead == 2
    assert moments(plan) == [(1, 9), (1, 10), (1, 11), *((0, k - 3) for k in range(3, 12))]


def test_the_odd_one_waits_for_the_end_of_the_run():
    """Three equal weights in two places: the first and the last are in the same."""
    sample = in_sequence(64, 64, 64)
    plan = sample.checked_plan(128, 1)
    a, b, c = places(plan)
    assert a == c != b
    assert moments(plan) == [(1, 2), (1, 2), (0, 0)]
    assert any("1 of 3 reloads" in note for note in plan.notes)


def test_a_free_place_is_taken_earlier():
    """Beside two large weights there is room for the small ones long before they are used."""
    sample = in_sequence(64, 64, 8, 8, 8, 8, 8, 8)
    explicit, free = sample.plan(128, lookahead=1), sample.plan(128)
    assert starts(explicit) == {0: -1, 1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6}
    # 1 waits for the end of 7, beside which and 0 it has no room; then 2 for the end of 0.
    assert starts(free) == {0: -2, 1: 0, 2: 1, 3: 1, 4: 1, 5: 1, 6: 2, 7: 3}
    assert free.pool_bytes == explicit.pool_bytes == 128 and free.lookahead == 1
    check(sample, explicit, 1)
    check(sample, free, 4)


def test_another_place_for_an_earlier_start():
    """The first weight gives way to the last of the run before, in other bytes."""
    sample = in_sequence(64, 8, 24, 64, 64, 24)
    plan = sample.checked_plan(128, 1)
    assert starts(plan) == {k: k - 1 for k in range(6)}


def test_moves_that_make_way_for_others():
    """The first reload follows the last one of the run before, which is itself moved: to where 2,
    the large one, lets it in."""
    sample = in_sequence(8, 16, 64, 16, 24, 8)
    plan = sample.plan(None)
    assert starts(plan) == {0: -3, 1: -2, 2: 1, 3: 2, 4: 3, 5: 3}
    check(sample, plan, 4)


def test_a_reload_moves_into_the_run_before():
    """Placing cuts time at the start of a run; the last submission leaves the first one's place."""
    sample = in_sequence(64, 64, 8, 8)
    plan = sample.checked_plan(128, 1)
    # Not only after submission 3, the end of the run, but after submission 2.
    assert plan.reloads[0] == Reload(0, 1, 2)


def test_submissions_without_weights():
    """Steps before the first weight and behind the last, and residents in between."""
    sample = program([(64, 2), (64, 5), (64, 8)], steps=12)
    plan = sample.checked_plan(128, 1)
    assert plan.submissions == (Submission(0, 2), Submission(2, 5, (0,)), Submission(5, 8, (1,)),
                             Submission(8, 12, (2,)))
    assert sync_points(plan) == [1, 2, 3]
    # 0 and 2 share a place: free when the run ends, while the next begins with submission 0.
    assert moments(plan) == [(1, 3), (0, 0), (0, 1)]
    none = sample.checked_plan(64, 0)
    assert moments(none) == [(0, 0), (0, 1), (0, 2)]


def test_host_calls_end_submissions():
    sample = program([(64, 1), (64, 4), (64, 6)], steps=8, host_calls=(2, 3, 7))
    plan = sample.checked_plan(64, 0)
    assert [(s.first, s.end, s.waits) for s in plan.submissions] == [
        (0, 1, ()), (1, 3, (0,)), (3, 4, ()), (4, 6, (1,)), (6, 8, (2,))]
    assert moments(plan) == [(0, 0), (0, 2), (0, 3)]
    # Free after the submission of its user: that of step 1, where a host call ends it.
    assert [r for r in plan.records if isinstance(r, Release)] == [
        Release(0, 1), Release(1, 3), Release(2, 4)]
    nothing = sample.plan(1 << 20)
    assert [(s.first, s.end) for s in nothing.submissions] == [(0, 3), (3, 4), (4, 8)]


def test_weights_of_one_step_share_a_submission():
    sample = program([(64, 0), (32, 0), (64, 1), (32, 1), (64, 2), (32, 2)])
    plan = sample.checked_plan(96, 0)
    assert [s.waits for s in plan.submissions] == [(0, 1), (2, 3), (4, 5)]
    assert plan.pool_bytes == 96


def test_several_users():
    """From the first to the last user nobody else may have the place."""
    sample = program([(64, 0), (32, 1, 4), (32, 2), (32, 3), (64, 5)])
    plan = sample.checked_plan(64, 0)
    waits = {w: s for s, submission in enumerate(plan.submissions) for w in submission.waits}
    assert waits[1] == 1 and Release(1, 3) in plan.records
    assert plan.offsets[2] == plan.offsets[3] != plan.offsets[1]


def test_a_weight_used_at_both_ends_stays():
    """Its place would be its own all the time, and then it need not be read again."""
    sample = program([(64, 0, 5), *((64, i) for i in range(1, 5))], steps=6)
    plan = sample.plan(128, lookahead=0)
    assert plan.resident == (0,) and plan.streamed == (1, 2, 3, 4)
    assert plan.minimum_budget == 128 == plan.peak_bytes
    # Used at the last but one step only, it leaves its place to nobody either: lookahead.
    ahead = program([(64, 0, 4), *((64, i) for i in range(1, 6))], steps=6)
    assert 0 in ahead.plan(None, lookahead=1).resident


def test_one_layer_only():
    """A place that nobody shares saves nothing."""
    for sample in (in_sequence(64), program([(64, 3), (64, 3)], steps=6),
                   program([(64, 2)], steps=4, host_calls=(1, 2))):
        for lookahead in (0, 1, 5, None):
            plan = sample.plan(sample.total, lookahead=lookahead)
            assert plan.streamed == () and plan.minimum_budget == plan.peak_bytes == sample.total
            with pytest.raises(InputError):
                sample.plan(sample.total - 1, lookahead=lookahead)


# What is streamed


def test_everything_fits():
    plan = TWELVE.plan(768)
    assert plan.streamed == plan.records == () and plan.resident == tuple(range(12))
    assert plan.submissions == (Submission(0, 12),)
    assert (plan.pool_bytes, plan.bytes_per_run, plan.peak_bytes) == (0, 0, 768)
    assert plan.minimum_budget == 128
    assert TWELVE.plan(767).streamed != ()


def test_every_weight_of_budget_saves_one_of_reading():
    for count in range(2, 12):
        plan = TWELVE.plan(64 * count + 63, lookahead=1)
        assert len(plan.streamed) == 14 - count and plan.peak_bytes == 64 * count


def test_streamed_weights_are_spread_over_time():
    plan = TWELVE.plan(64 * 8, lookahead=1)
    gaps = {b - a for a, b in zip(plan.streamed, plan.streamed[1:])}
    assert len(plan.streamed) == 6 and gaps == {2}
    third = TWELVE.plan(64 * 10, lookahead=1)
    assert {b - a for a, b in zip(third.streamed, third.streamed[1:])} == {3}


def test_costs_say_where_there_is_something_to_hide_behind():
    """All the computing is in two steps: their weights' neighbours are streamed."""
    seconds = [0.0] * 12
    seconds[3] = seconds[9] = 10.0
    cost = Cost(tuple(seconds), 6.4)
    plan = TWELVE.plan(64 * 10, lookahead=1, cost=cost)
    assert len(plan.streamed) == 4
    even = TWELVE.plan(64 * 10, lookahead=1)
    assert plan.streamed != even.streamed


def test_small_weights_stay():
    sample = program([(size, step) for step in range(12) for size in (6400, 8)])
    plan = sample.plan(None)
    assert plan.resident == tuple(range(1, 24, 2))
    assert plan.minimum_budget == plan.peak_bytes == 2 * 6400 + 12 * 8
    assert plan.notes[0] == "12 small weights stay, 96 B together"


def test_a_large_weight_stays_before_its_small_neighbours():
    """The pool has to hold the largest of what is streamed, so it is the first to stay."""
    plan = in_sequence(10, 10, 100, 10, 10, 10, 10, 10).plan(125, lookahead=1)
    assert plan.resident == (2,) and plan.peak_bytes == 120 and plan.bytes_per_run == 70


def test_who_may_not_be_streamed():
    """Not allowed, never used, without bytes, read by a host call, in other memory."""
    sample = program([(64, 0), (64,), (0, 1), (64, 2), (64, 3), (64, 4), (64, 5), (64, 6)],
                     host_calls=(2,), bits=[3, 3, 3, 3, 4, 3, 3, 3])
    plan = sample.checked_plan(None, 0, streamable=[1, 2, 3, 4, 5, 6, 7])
    assert plan.streamed == (5, 6, 7) and plan.type_bits == 3
    assert plan.minimum_budget == 4 * 64 + 1 + 64


def test_a_weight_that_takes_no_memory():
    """One that is read in the file itself: not streamed, and free."""
    sample = Program(TWELVE.weight_table, ((0, 1, 0xFF), *TWELVE.needs[1:]), 12)
    plan = sample.plan(None, lookahead=1)
    assert plan.resident == (0,) and plan.peak_bytes == plan.pool_bytes == 128


def test_a_weight_without_bytes_in_the_file():
    """It has memory of its own all the same, and nothing to be read."""
    sample = in_sequence(*[64] * 6)
    empty = Program((*sample.weight_table[:2], replace(sample.weight_table[2], nbytes=0),
                     *sample.weight_table[3:]), sample.needs, 6)
    plan = empty.plan(None, lookahead=1)
    assert plan.resident == (2,) and plan.peak_bytes == 192


def test_nothing_to_stream():
    for sample in (Program((), (), 0), Program((), (), 3), program([(64, 0), (64, 1)], steps=2)):
        plan = sample.plan(1000, fixed_bytes=100, streamable=[])
        assert plan.streamed == () and plan.minimum_budget == plan.peak_bytes == 100 + sample.total
    assert Program((), (), 0).plan(0).submissions == ()


def test_residents_measured_by_the_caller():
    """Blocks of weights may take more than the weights: then fewer of them stay."""
    def blocks(residents):
        return -(-64 * len(residents) // 100) * 100

    plan = TWELVE.plan(599, lookahead=1, resident_bytes=blocks)
    assert (plan.resident_bytes, plan.pool_bytes, len(plan.resident)) == (400, 128, 6)
    exact = TWELVE.plan(600, lookahead=1)
    assert len(exact.resident) == 7


def test_what_is_always_needed_stays():
    """In no set of the family, whatever else is in it."""
    def needed(weight, first, last=None):
        return Candidate(weight, 64, 1, 64, first, first if last is None else last)

    across = [needed(0, 0, 5), *(needed(k, k) for k in range(1, 6))]
    assert Family(across, 0).everything().streamed == (1, 2, 3, 4, 5)
    assert Family(across, 0).set_of((0, 2, 4)).streamed == (2, 4)
    # Two layers, one ahead: each place is taken in both of them.
    pair = Family([needed(0, 0), needed(1, 3)], 1)
    assert pair.everything() == StreamedSet(0, 128, ())
    assert Family([needed(0, 0), needed(1, 3)], 0).everything() == StreamedSet(128, 64, (0, 1))


def test_the_sets_of_the_same_candidates_are_made_once_within(monkeypatch):
    """They are those that are made alone, also beside others that a family was asked for."""
    candidates = [Candidate(k, 64 * (k % 5 + 1), 64, 60, k, k) for k in range(30)]
    asked = tuple(range(0, 30, 3))
    others = Family(candidates, 1)
    others.set_of(asked)
    alone, with_another = Family(candidates, 1).sets(), others.sets()
    made, make = [], Family._make
    monkeypatch.setattr(Family, "_make", lambda self: made.append(1) or make(self))
    with sets_once():
        again = Family(candidates, 1)
        again.set_of(asked)
        assert again.sets() == with_another != alone
        assert Family(candidates, 1).sets() == alone
        assert len(made) == 1
        assert Family(candidates, 0).sets() != alone and len(made) == 2
    assert Family(candidates, 1).sets() == alone and len(made) == 3


def test_few_sets_are_placed_in_vain(monkeypatch):
    """A thousand sets of weights would fit, were it not for what blocks take beside them."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return arrange(*arguments)

    monkeypatch.setattr(streaming, "arrange", counted)
    sizes = [640 + 7 * k for k in range(14)]
    sample = in_sequence(*sizes)
    plan = sample.plan(6000, lookahead=1, resident_bytes=lambda residents: 600 * bool(residents)
                       + sum(sizes[k] for k in residents))
    assert plan.resident and plan.peak_bytes <= 6000
    assert len(calls) < 2 * streaming.PATIENCE


# Budgets


def test_exactly_the_minimum():
    for lookahead, minimum in ((0, 64), (1, 128), (2, 192), (5, 384)):
        plan = TWELVE.plan(1000 + minimum, fixed_bytes=1000, lookahead=lookahead)
        assert plan.minimum_budget == plan.peak_bytes == 1000 + minimum
        assert plan.lookahead == lookahead and len(plan.streamed) == 12
        assert plan == TWELVE.plan(None, fixed_bytes=1000, lookahead=lookahead)
        with pytest.raises(InputError, match=f"expected at least {1000 + minimum:,} bytes"):
            TWELVE.plan(999 + minimum, fixed_bytes=1000, lookahead=lookahead)
    assert TWELVE.plan(None).peak_bytes == 128


def test_the_message_names_the_parts():
    with pytest.raises(InputError, match=r"budget=5,000: expected at least 31,600 bytes "
                       r"\(10,000 for everything but weights, 8,800 of weights that stay, 12,800 "
                       r"of a pool for 10 weights at a lookahead of 1; a lookahead of 0 needs "
                       r"25,200\)"):
        in_sequence(*[6400] * 10, 2400, 6400).plan(5000, fixed_bytes=10000, streamable=range(10))


def test_a_look_ahead_beyond_the_layers():
    """It is cut to what leaves a place to share; with all of them ahead everything stays."""
    plan = TWELVE.plan(768, lookahead=99)
    assert plan.streamed == () and plan.minimum_budget == 768
    with pytest.raises(InputError, match="a lookahead of 0 needs 64"):
        TWELVE.plan(767, lookahead=99)
    most = TWELVE.checked_plan(None, 10)
    assert most.lookahead == 10 and most.pool_bytes == 704


@pytest.mark.parametrize("arguments", [
    {"budget": -1}, {"fixed_bytes": -1}, {"lookahead": -1}, {"cost": Cost((1.0,), 1.0)},
    {"cost": Cost((1.0,) * 12, 0.0)}, {"needs": TWELVE.needs[:-1]}])
def test_arguments_that_make_no_sense(arguments):
    options = {"fixed_bytes": 0, "budget": 1000, "needs": TWELVE.needs, **arguments}
    needs = options.pop("needs")
    with pytest.raises(InputError, match="expected"):
        plan_stream(TWELVE.weight_table, needs, 12, **options)
