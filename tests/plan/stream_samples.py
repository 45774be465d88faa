"""Weight tables by hand and by chance, and a slow, plain check of a streaming plan."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from vkrt.plan.stream.records import Release, Reload, StreamPlan, Wait
from vkrt.plan.stream.streaming import plan_stream
from vkrt.work.weights import Weight


@dataclass(frozen=True)
class Program:
    """What `plan_stream` is asked about."""

    weight_table: tuple[Weight, ...]
    needs: tuple[tuple[int, int, int], ...]
    steps: int
    host_calls: tuple[int, ...] = ()

    def plan(self, budget: int | None, fixed_bytes: int = 0, **options) -> StreamPlan:
        return plan_stream(self.weight_table, self.needs, self.steps, fixed_bytes=fixed_bytes,
                           budget=budget, host_calls=self.host_calls, **options)

    def checked_plan(self, budget: int | None, lookahead: int, **options) -> StreamPlan:
        """A plan of which everything holds that has to."""
        plan = self.plan(budget, lookahead=lookahead, **options)
        check(self, plan, lookahead)
        return plan

    @property
    def total(self) -> int:
        """Bytes of all weights, resident."""
        return sum(-(-nbytes // alignment) * alignment for nbytes, alignment, _ in self.needs)


def program(weights: Sequence[tuple], steps: int | None = None, host_calls=(), alignment: int = 1,
            bits: Sequence[int] = ()) -> Program:
    """A program of weights (bytes, first user, more users..)."""
    table = tuple(Weight(i, i, f"w{i}", 0, 1000 * i, nbytes, "file", tuple(users))
                    for i, (nbytes, *users) in enumerate(weights))
    needs = tuple((max(nbytes, 1), alignment, bits[i] if bits else 0xFF)
                  for i, (nbytes, *_) in enumerate(weights))
    if steps is None:
        steps = 1 + max(user for weight in table for user in weight.users)
    return Program(table, needs, steps, tuple(host_calls))


def in_sequence(*sizes: int, **options) -> Program:
    """One weight for each step, in order."""
    return program([(size, step) for step, size in enumerate(sizes)], **options)


def random_program(seed: int) -> Program:
    """Weights of all sizes, some with several users, some steps with several weights or none."""
    chance = random.Random(seed)
    steps = chance.randint(1, 30)
    sizes = chance.choice([[64], [16, 64, 256], [1, 7, 40, 100, 333, 1000]])
    alignment = chance.choice([1, 4, 16])
    host_calls = [s for s in range(steps) if chance.random() < 0.1]
    weights = []
    for _ in range(chance.randint(0, 25)):
        users = {chance.randrange(steps)}
        while chance.random() < 0.15:
            users.add(chance.randrange(steps))
        if chance.random() < 0.05:
            users = set()
        weights.append((0 if chance.random() < 0.05 else chance.choice(sizes), *sorted(users)))
    return program(weights, steps, host_calls, alignment)


def starts(plan: StreamPlan) -> dict[int, int]:
    """The submission from whose start on each weight's place is its own, by its index; negative in
    the run before the one that waits for it."""
    return {r.weight: r.after + 1 - r.ahead * len(plan.submissions) for r in plan.reloads}


def check(sample: Program, plan: StreamPlan, max_lookahead: int) -> None:
    """Everything that has to hold for any plan whose reloads start so many layers ahead at most,
    over cyclic time and place by place."""
    table, count = sample.weight_table, len(plan.submissions)
    assert sorted((*plan.resident, *plan.streamed)) == list(range(len(table)))
    assert plan.bytes_per_run == sum(table[w].nbytes for w in plan.streamed)
    # The submissions are all the steps, and a host call ends one.
    steps = [step for submission in plan.submissions
             for step in range(submission.first, submission.end)]
    assert steps == list(range(sample.steps))
    ends = {submission.end - 1 for submission in plan.submissions}
    assert ends.issuperset(sample.host_calls)
    assert all(submission.end > submission.first for submission in plan.submissions)
    submission_of = {step: number for number, submission in enumerate(plan.submissions)
                  for step in range(submission.first, submission.end)}

    reloads = {r.weight: r for r in plan.records if isinstance(r, Reload)}
    waits = {r.weight: r.submission for r in plan.records if isinstance(r, Wait)}
    releases = {r.weight: r.submission for r in plan.records if isinstance(r, Release)}
    assert len(plan.records) == 3 * len(plan.streamed)
    assert set(reloads) == set(waits) == set(releases) == set(plan.offsets) == set(plan.streamed)
    for weight in plan.streamed:
        users = table[weight].users
        assert waits[weight] == submission_of[users[0]]
        assert releases[weight] == submission_of[users[-1]]
        assert weight in plan.submissions[waits[weight]].waits
        assert plan.submissions[waits[weight]].first == users[0]
        assert not set(users) & set(sample.host_calls)
    assert sum(len(submission.waits) for submission in plan.submissions) == len(plan.streamed)
    # Cut for host calls and for weights that are waited for, and for nothing else.
    assert {s.first for s in plan.submissions if s.first} == {
        *(call + 1 for call in sample.host_calls if call + 1 < sample.steps),
        *(table[w].users[0] for w in plan.streamed if table[w].users[0])}

    # Reloads, waits and releases come in the order in which they happen.
    moments = [(r.submission, 0) if isinstance(r, Wait) else (r.submission, 1)
               if isinstance(r, Release) else (r.after, 2 + r.ahead) for r in plan.records]
    assert moments == sorted(moments)
    order = [r.weight for r in plan.records if isinstance(r, Wait)]
    assert list(plan.streamed) == order == [r.weight for r in plan.reloads]
    transfers = [r for r in plan.records if isinstance(r, Reload)]
    early = [r.weight for r in transfers if r.ahead]
    assert early + [r.weight for r in transfers if not r.ahead] == order

    begin = starts(plan)
    assert [begin[w] for w in order] == sorted(begin[w] for w in order)
    if order:
        assert begin[order[-1]] - count <= begin[order[0]]
    layers = sync_points(plan)
    unrolled = [number + turn * count for turn in range(-9, 1) for number in layers]
    for weight in order:
        place = unrolled.index(waits[weight], len(unrolled) - len(layers))
        assert unrolled[max(place - max_lookahead, 0)] <= begin[weight] <= waits[weight]
        assert releases[weight] - begin[weight] < count  # not all around

    # Whoever owns bytes in a submission owns them alone: three runs, the middle one looked at.
    end = 0
    for weight in order:
        nbytes, alignment, bits = sample.needs[weight]
        assert plan.offsets[weight] % alignment == 0 and bits & plan.type_bits == plan.type_bits
        assert plan.alignment % alignment == 0
        end = max(end, plan.offsets[weight] + nbytes)
    assert plan.pool_bytes == end
    for submission in range(count, 2 * count):
        owned = sorted((plan.offsets[weight], plan.offsets[weight] + sample.needs[weight][0])
                       for weight in order for run in range(4)
                       if (run * count + begin[weight] <= submission
                           <= run * count + releases[weight]))
        assert all(a_end <= b_start
                   for (_, a_end), (b_start, _) in zip(owned, owned[1:])), submission


def sync_points(plan: StreamPlan) -> list[int]:
    """The submissions that wait for at least one weight."""
    return [number for number, submission in enumerate(plan.submissions) if submission.waits]


def could_start(sample: Program, plan: StreamPlan, max_lookahead: int) -> dict[int, int]:
    """The earliest start of each reload, all others being where they are, in the place it has."""
    count, begin = len(plan.submissions), starts(plan)
    waits = {r.weight: r.submission for r in plan.records if isinstance(r, Wait)}
    releases = {r.weight: r.submission for r in plan.records if isinstance(r, Release)}
    layers = sync_points(plan)
    result = {}
    for number, weight in enumerate(plan.streamed):
        unrolled = [n + turn * count for turn in range(-9, 1) for n in layers]
        place = unrolled.index(waits[weight], len(unrolled) - len(layers))
        before = begin[plan.streamed[number - 1]] - (0 if number else count)
        earliest = max(unrolled[place - max_lookahead], before, releases[weight] - count + 1)
        for other in plan.streamed:
            low, high = plan.offsets[weight], plan.offsets[weight] + sample.needs[weight][0]
            first, end = plan.offsets[other], plan.offsets[other] + sample.needs[other][0]
            if other == weight or end <= low or high <= first:
                continue
            done = [releases[other] + turn * count for turn in (-2, -1, 0)]
            earliest = max(earliest, 1 + max(d for d in done if d < waits[weight]))
        result[weight] = earliest
    return result
