"""What a run takes: two lanes, worked by hand."""

import pytest
from stream_samples import in_sequence, program, random_program

from vkrt.plan.stream.records import Cost, Submission
from vkrt.plan.stream.time import Estimate, simulate_run


def run(plan, compute, transfer) -> Estimate:
    """A run with the same seconds for every submission and every reload."""
    return simulate_run(plan, [compute] * len(plan.submissions),
                        dict.fromkeys(plan.streamed, transfer))


TWELVE = in_sequence(*[64] * 12)


@pytest.mark.parametrize(("budget", "lookahead", "compute", "transfer", "total", "wait"), [
    # Nothing overlaps: 12 transfers of 2 and 12 submissions of 1.
    pytest.param(64, 0, 1.0, 2.0, 36, 2.0, id="turns without a look-ahead"),
    # Transfers follow each other without a gap; a submission starts when its own is there.
    pytest.param(128, 1, 1.0, 2.0, 24, 1.0, id="transfers longer than computing"),
    pytest.param(128, 1, 2.0, 1.0, 24, 0.0, id="computing longer than transfers")])
def test_equal_weights(budget, lookahead, compute, transfer, total, wait):
    line = run(TWELVE.plan(budget, lookahead=lookahead), compute, transfer)
    assert line == Estimate(total, (wait,) * 12)


def test_one_reload_that_waits_for_the_end_of_the_run():
    """Three equal weights in two places, 3 to compute, 2 to transfer: the first is reloaded while
    nothing is computed, the others behind that."""
    line = run(in_sequence(64, 64, 64).plan(128, lookahead=1), 3.0, 2.0)
    assert (line.total, sum(line.waits)) == (11, 2) and line.waits == (2.0, 0.0, 0.0)


def test_a_large_weight_behind_small_submissions():
    """The wait is at the one that is late, and only there."""
    sample = in_sequence(64, 64, 640, 64)
    plan = sample.plan(None, lookahead=1)
    line = simulate_run(plan, [1.0, 1.0, 1.0, 1.0], {0: 0.5, 1: 0.5, 2: 3.0, 3: 0.5})
    # 2 is reloaded while 1 computes, from its start: 1 hidden, 2 waited for.
    assert line.waits == (0.0, 0.0, 2.0, 0.0) and line.total == 6.0


def test_submissions_without_weights_hide_too():
    sample = program([(64, 1), (64, 3)], steps=6, host_calls=(4,))
    plan = sample.plan(64, lookahead=0)
    assert plan.submissions == (Submission(0, 1), Submission(1, 3, (0,)), Submission(3, 5, (1,)),
                                Submission(5, 6))
    line = simulate_run(plan, [5.0, 1.0, 1.0, 5.0], {0: 2.0, 1: 3.0})
    assert line.waits == (0.0, 2.0, 3.0, 0.0) and line.total == 17.0


def test_the_first_reloads_have_a_run_to_hide_behind():
    """Before the run with four layers begins, two of them have been on their way."""
    plan = in_sequence(64, 64, 64, 64).plan(128, lookahead=1)
    line = simulate_run(plan, [4.0, 0.0, 0.0, 4.0], dict.fromkeys(range(4), 2.0))
    # Weight 0 comes while 3 computes, 1 while 0 does; 2 and 3 behind each other, one beside 0.
    assert line.total == pytest.approx(8.0 + sum(line.waits))
    assert line.waits[0] == 0.0 and line.waits[1] == 0.0 and sum(line.waits) == 4.0


def test_nothing_streamed():
    line = run(TWELVE.plan(768), 7.0, 1.0)
    assert line == Estimate(7.0, (0.0,))


@pytest.mark.parametrize("seed", range(20))
def test_bounds(seed):
    """No run is shorter than either lane, nor longer than one behind the other."""
    sample = random_program(seed)
    plan = sample.plan(None)
    cost = Cost(tuple(0.5 + step % 3 for step in range(sample.steps)), 50.0, reload_seconds=0.25)
    seconds = {w: cost.weight_seconds(sample.weight_table[w].nbytes) for w in plan.streamed}
    line = simulate_run(plan, cost.submission_seconds(plan.submissions), seconds)
    compute, transfer = sum(cost.step_seconds), sum(seconds.values())
    assert transfer == pytest.approx(sum(0.25 + sample.weight_table[w].nbytes / 50
                                         for w in plan.streamed))
    assert line.total == pytest.approx(compute + sum(line.waits))
    assert max(compute, transfer) <= line.total + 1e-9
    assert line.total <= compute + transfer + 1e-9
    assert all(wait == 0 for wait, submission in zip(line.waits, plan.submissions)
               if not submission.waits)
