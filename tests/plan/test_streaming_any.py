"""Streaming plans of any program: checked submission by submission and place by place."""

import random

import pytest
from stream_samples import Program, check, could_start, in_sequence, random_program, starts

from vkrt.plan.stream.records import Cost, Reload, StreamPlan
from vkrt.plan.stream.time import simulate_run

SEEDS = (*range(8), 11, 14, 27)


def budgets(sample: Program, lookahead: int | None, count: int) -> list[int]:
    """From the minimum to everything resident."""
    least = sample.plan(None, 7, lookahead=lookahead).minimum_budget
    return [least + (sample.total + 7 - least) * k // count for k in range(count + 1)]


@pytest.mark.parametrize("lookahead", [0, 1, 2, 7, None])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_budget(seed, lookahead):
    sample = random_program(seed)
    max_lookahead = 4 if lookahead is None else lookahead
    read = None
    for budget in budgets(sample, lookahead, 5):
        plan = sample.plan(budget, 7, lookahead=lookahead)
        check(sample, plan, max_lookahead)
        assert plan.peak_bytes <= budget and plan.minimum_budget <= budget
        assert read is None or plan.bytes_per_run <= read
        read = plan.bytes_per_run
    assert read == 0
    assert plan == sample.plan(budget, 7, lookahead=lookahead)


def test_random_programs_stream():
    """Or the test above would say little."""
    plans = [random_program(seed).plan(None, lookahead=1) for seed in SEEDS]
    assert sum(len(plan.streamed) > 5 for plan in plans) > len(SEEDS) // 3
    assert any(len(submission.waits) > 1 for plan in plans for submission in plan.submissions)
    assert any(r.ahead for plan in plans for r in plan.reloads)
    assert sum(len(w.users) > 1 for seed in SEEDS
               for w in random_program(seed).weight_table) > len(SEEDS)


@pytest.mark.parametrize("lookahead", [0, 1, 2, None])
def test_no_reload_could_start_earlier(lookahead):
    """As early as its place allows: one submission more would meet another tenant."""
    moved = 0
    for seed in SEEDS:
        sample = random_program(seed)
        for budget in budgets(sample, lookahead, 2)[:2]:
            plan = sample.plan(budget, 7, lookahead=lookahead)
            now = starts(plan)
            assert now == could_start(sample, plan, 4 if lookahead is None else lookahead)
            moved += sum(start < 0 for start in now.values())
    assert moved > 0 or lookahead == 0


@pytest.mark.parametrize("count,lookahead", [(4, 1), (12, 1), (7, 1), (12, 2), (12, 3), (10, 2)])
def test_pool_of_equal_weights(count, lookahead):
    """One place more than layers ahead, whether or not they divide the number of weights."""
    sample = in_sequence(*[64] * count)
    plan = sample.checked_plan(None, lookahead)
    assert plan.pool_bytes == 64 * (lookahead + 1)
    late = [weight for weight, start in starts(plan).items() if start > weight - lookahead]
    assert (not late) == (count % (lookahead + 1) == 0)
    assert len(late) <= lookahead


@pytest.mark.parametrize("seed", range(12))
def test_pool_is_what_lives_at_once(seed):
    """With a lookahead of one the pool is no larger than the largest pair of neighbours."""
    chance = random.Random(seed)
    sizes = [chance.randint(50, 1000) for _ in range(chance.randint(6, 40))]
    plan = in_sequence(*sizes).plan(None, lookahead=1)
    pairs = [a + b for a, b in zip(sizes, sizes[1:])]
    assert len(plan.streamed) == len(sizes) and plan.pool_bytes == max(pairs)


def fewest_bytes(sizes: list[int], limits: list[int]) -> list[int]:
    """The fewest bytes to read with a lookahead of one for each limit of memory, of all sets.

    Bit b of a number says that b bytes can be resident. For each size of the pool, and each weight
    as the last one that is streamed: its neighbour before it is any that fits beside it.
    """
    total, best = sum(sizes), [sum(sizes)] * len(limits)
    for pool in {0, *(a + b for a in sizes for b in (0, *sizes))}:
        ends: list[tuple[int, int, int]] = []  # (place, size, what can be resident)
        for place, size in enumerate(sizes):
            if size <= pool:
                found = 1 << sum(sizes[:place])
                for other, neighbour, resident in ends:
                    if neighbour + size <= pool:
                        found |= resident << sum(sizes[other + 1:place])
                ends.append((place, size, found))
        resident = 1 << total
        for place, _, found in ends:
            resident |= found << sum(sizes[place + 1:])
        for number, limit in enumerate(limits):
            if limit >= pool:
                kept = (resident & ((1 << (limit - pool + 1)) - 1)).bit_length() - 1
                if kept >= 0:
                    best[number] = min(best[number], total - kept)
    return best


def test_close_to_the_optimum():
    """Never better than the best of all sets, and on average within half a percent of it."""
    over = []
    for seed in range(6):
        chance = random.Random(seed)
        sizes = [chance.choice([40, 64, 100, 333, 640, 1000]) for _ in range(30)]
        sample = in_sequence(*sizes)
        limits = budgets(sample, 1, 12)
        best = fewest_bytes(sizes, [limit - 7 for limit in limits])
        assert best[-1] == 0 < best[-2]
        for limit, least in zip(limits, best):
            read = sample.plan(limit, 7, lookahead=1).bytes_per_run
            assert read >= least
            over.append((read - least) / sum(sizes))
    assert sum(over) / len(over) <= 0.005


def test_many_weights():
    chance = random.Random(1)
    sample = in_sequence(*[chance.choice([100, 400, 400, 1600]) for _ in range(150)], alignment=4)
    for budget in budgets(sample, None, 3):
        plan = sample.plan(budget, 7)
        check(sample, plan, 4)
        assert plan.peak_bytes <= budget
    # Of 150 weights, the budget between is used to less than one of them.
    assert budget == sample.total + 7
    middle = sample.plan(sample.total // 2)
    assert sample.total // 2 - middle.peak_bytes < 1600


# The lookahead that is chosen


def costs(sample: Program, compute: list[float], transfer: float) -> Cost:
    """A cost model in which all weights take `transfer` seconds together."""
    return Cost(tuple(compute), sum(w.nbytes for w in sample.weight_table) / transfer)


def seconds(sample: Program, plan: StreamPlan, cost: Cost) -> float:
    return simulate_run(plan, cost.submission_seconds(plan.submissions),
                        {w: cost.weight_seconds(sample.weight_table[w].nbytes)
                         for w in plan.streamed}).total


def test_one_is_enough_for_equal_layers():
    sample = in_sequence(*[64] * 12)
    for transfer in (1.0, 12.0, 50.0):
        assert sample.plan(500, cost=costs(sample, [1.0] * 12, transfer)).lookahead == 1


def test_more_where_layers_are_uneven():
    """Long and short layers alternate by two: what two short ones read does not fit the second."""
    sample = in_sequence(*[64] * 16)
    cost = costs(sample, [3.0, 3.0, 0.1, 0.1] * 4, 24.0)
    roomy = sample.plan(64 * 5, cost=cost)
    assert roomy.lookahead > 1 and roomy.minimum_budget == 128
    assert roomy.peak_bytes <= 64 * 5
    tight = sample.plan(128, cost=cost)
    assert tight.lookahead == 1 and tight.bytes_per_run == 1024

    one = sample.plan(64 * 5, lookahead=1, cost=cost)
    assert seconds(sample, roomy, cost) < 0.98 * seconds(sample, one, cost)
    # One more gains no more than two percent, or does not fit.
    more = roomy.lookahead + 1
    assert (more > 4 or sample.plan(None, lookahead=more).minimum_budget > 64 * 5
            or seconds(sample, sample.plan(64 * 5, lookahead=more, cost=cost), cost)
            >= 0.98 * seconds(sample, roomy, cost))


def test_moves_shorten_a_run():
    """What is moved earlier is worth it: the same memory, a shorter run."""
    sample = in_sequence(640, 80, 80, 80, 640, 80, 80, 80, 80)
    cost = costs(sample, [1.0] * 9, 9.0)
    one, free = sample.plan(720, lookahead=1), sample.plan(720)
    assert one.pool_bytes == free.pool_bytes and one.streamed == free.streamed

    assert starts(one) != starts(free)
    assert seconds(sample, free, cost) <= seconds(sample, one, cost)
    assert all(isinstance(r, Reload) for r in free.reloads)
