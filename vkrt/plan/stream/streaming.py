"""Streaming weights: a plan under which a program runs although its weights do not fit.

Some weights stay on the device, the others are read again in every run, into places of one pool
that they share over time: which weights (`streamed_sets`), where in the pool and from when to when
(`pool`), and what a run takes (`time`). A pure function of the weight table, the budget and what
the driver says storages need.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from vkrt.errors import InputError
from vkrt.plan.stream.other_sizes import Residency
from vkrt.plan.stream.pool import Arrangement, Candidate, arrange, records_of
from vkrt.plan.stream.records import MAX_LOOKAHEAD, Cost, StreamPlan
from vkrt.plan.stream.streamed_sets import Family, StreamedSet, split_small
from vkrt.plan.stream.time import simulate_run
from vkrt.work.tensor import round_up
from vkrt.work.weights import Weight

# (bytes, alignment in bytes, bits of the memory types) that a weight's storage needs
Needs = tuple[int, int, int]

# A larger lookahead has to make a run this much shorter to be worth its memory.
MIN_GAIN = 0.02
# After so many sets of weights that were placed in vain, the bytes that a set is expected to need
# are raised by the most that placing has taken beyond them.
PATIENCE = 30
# Where the first of evenly spread weights is, in parts of their distance.
PHASES = (0.0, 0.25, 0.5, 0.75)


def plan_stream(table: Sequence[Weight], needs: Sequence[Needs], steps: int, *,
                fixed_bytes: int, budget: int | None, streamable: Collection[int] | None = None,
                host_calls: Collection[int] = (), lookahead: int | None = None,
                cost: Cost | None = None,
                resident_bytes: Callable[[Sequence[int]], int] | None = None,
                at_sizes: Residency | None = None) -> StreamPlan:
    """Chooses what is streamed and plans when and where.

    The plan reads the fewest bytes that the budget allows with this lookahead. Among equal weights
    it streams those with the most computing between them. The same arguments give the same plan,
    and a larger budget never makes it read more (unless a cost model chooses another lookahead).

    Args:
        needs: of each weight's storage, as `Requirements` gives them; 0 bytes for a weight that
            takes none.
        steps: number of steps in the command list.
        fixed_bytes: device bytes of everything that is not a weight.
        budget: the most device bytes in all; None for as few as the lookahead allows.
        streamable: the weights (by index) that may be streamed, all buffers or all images; None for
            every one. Weights that a host call reads, that nothing reads, that have no bytes, or
            that fit in none of the memory types of most bytes are never streamed.
        host_calls: the steps that run on the host; each ends a submission.
        lookahead: how many sync points ahead a reload may start; 0 overlaps nothing. The first
            reloads of a run may have to start later, when the run before it ends. None: places for
            1 (with a cost model: for the smallest number from 1 to 4 where one more would not make
            a run 2 % shorter), and reloads up to 4 sync points ahead where their places happen to
            be free.
        cost: what steps and transfers take. Without one, all steps count as equal.
        resident_bytes: bytes that a set of residents takes; by default the sum of their needs.
        at_sizes: when weights are needed; by default at the steps that use them.

    Raises:
        InputError: a budget below the minimum, or arguments that make no sense.
    """
    _check(table, needs, steps, fixed_bytes, budget, lookahead, cost)
    planner = _Planner(table, needs, steps, fixed_bytes, budget or 0, frozenset(host_calls), cost,
                       resident_bytes, at_sizes or Residency({}))
    planner.sort_out(range(len(table)) if streamable is None else streamable)
    if budget is None:
        planner.budget = planner.minimum(1 if lookahead is None else lookahead)
    if lookahead is not None:
        return planner.plan(lookahead, lookahead)
    best = planner.plan(1, MAX_LOOKAHEAD)
    if cost is not None and best.streamed:
        for more in range(2, MAX_LOOKAHEAD + 1):
            if planner.minimum(more) > planner.budget:
                break
            found = planner.plan(more, MAX_LOOKAHEAD)
            if (planner.run_seconds(found, cost)
                    >= (1 - MIN_GAIN) * planner.run_seconds(best, cost)):
                break
            best = found
    return replace(best, minimum_budget=planner.minimum(1))


def _check(table: Sequence[Weight], needs: Sequence[Needs], steps: int, fixed_bytes: int,
           budget: int | None, lookahead: int | None, cost: Cost | None) -> None:
    if len(needs) != len(table):
        raise InputError(f"{len(needs)} needs for {len(table)} weights: expected one for each")
    for name, value in (("budget", budget or 0), ("fixed_bytes", fixed_bytes),
                        ("lookahead", lookahead or 0)):
        if value < 0:
            raise InputError(f"{name}={value}: expected 0 or more")
    if cost is not None and (len(cost.step_seconds) != steps or cost.bytes_per_second <= 0):
        raise InputError(f"a cost of {len(cost.step_seconds)} steps and {cost.bytes_per_second} "
                         f"bytes/s: expected {steps} steps and a positive number")


class _Planner:
    """The arguments of `plan_stream` without the lookahead, and the plans that they allow."""

    def __init__(self, table: Sequence[Weight], needs: Sequence[Needs], steps: int,
                 fixed_bytes: int, budget: int, host_calls: frozenset[int], cost: Cost | None,
                 resident_bytes: Callable[[Sequence[int]], int] | None, at_sizes: Residency):
        self.weight_table = table
        self.needs = needs
        self.steps = steps
        self.fixed_bytes = fixed_bytes
        self.budget = budget
        self.host_calls = host_calls
        self.ends = (host_calls - {steps - 1}) | at_sizes.ends
        self.spans = at_sizes.spans
        self.cost = cost or Cost((1.0,) * steps, 1.0)
        self.has_cost = cost is not None
        self.resident_bytes = resident_bytes or self._sum
        self.candidates: list[Candidate] = []
        self.notes: list[str] = []
        self._families: dict[int, Family] = {}
        self._minima: dict[int, tuple[StreamedSet, int]] = {}

    def _sum(self, weights: Sequence[int]) -> int:
        return sum(round_up(*self.needs[weight][:2]) for weight in weights)

    def sort_out(self, streamable: Collection[int]) -> None:
        possible = []
        for index in sorted(set(streamable)):
            weight, (nbytes, alignment, _) = self.weight_table[index], self.needs[index]
            if (weight.users and weight.nbytes and nbytes
                    and not self.host_calls.intersection(weight.users)):
                span = self.spans.get(weight.storage, (weight.users[0], weight.users[-1]))
                possible.append(Candidate(index, nbytes, alignment, weight.nbytes, *span))
        # One allocation holds all candidates: the memory types of most bytes decide.
        by_type: Counter[int] = Counter()
        for candidate in possible:
            by_type[self.needs[candidate.weight][2]] += candidate.nbytes
        bits = max(by_type, key=by_type.__getitem__, default=0)
        suited = []
        for candidate in possible:
            if bits & self.needs[candidate.weight][2]:
                bits &= self.needs[candidate.weight][2]
                suited.append(candidate)
        suited.sort(key=lambda c: (c.first, c.weight))
        self.candidates, small = split_small(suited)
        if small:
            self.notes.append(f"{len(small)} small weights stay, "
                              f"{sum(c.nbytes for c in small):,} B together")

    def minimum(self, lookahead: int) -> int:
        """The smallest budget that allows this lookahead."""
        return self._minimum(lookahead)[1]

    def plan(self, lookahead: int, max_lookahead: int) -> StreamPlan:
        """The plan with places for `lookahead` sync points, taken up to `max_lookahead` ahead;
        InputError if the budget does not allow it."""
        smallest, minimum = self._minimum(lookahead)
        nothing = self._made((), lookahead, max_lookahead)
        if nothing.peak_bytes <= self.budget:
            return replace(nothing, minimum_budget=minimum)
        if minimum > self.budget:
            raise InputError(self._too_small(smallest, lookahead, minimum))
        fewest = self._fewest_bytes(smallest, lookahead, max_lookahead)
        found = self._spread(fewest, lookahead, max_lookahead)
        return replace(found, minimum_budget=minimum)

    def _fewest_bytes(self, smallest: StreamedSet, lookahead: int,
                      max_lookahead: int) -> StreamPlan:
        """The plan that reads the fewest bytes, of those made from the family."""
        candidates = {c.weight for c in self.candidates}
        others = self.fixed_bytes + self._sum([w for w in range(len(self.weight_table))
                                               if w not in candidates])
        tries = more = 0
        for candidate_set in self._family(lookahead).sets():
            expected = others + candidate_set.nbytes
            if expected + more * (tries >= PATIENCE) > self.budget:
                continue
            found = self._made(candidate_set.streamed, lookahead, max_lookahead)
            if found.peak_bytes <= self.budget:
                return found
            tries += 1
            more = max(more, found.peak_bytes - expected)
        return self._made(smallest.streamed, lookahead, max_lookahead)

    def _spread(self, best: StreamPlan, lookahead: int, max_lookahead: int) -> StreamPlan:
        """Streams other weights of the same size instead, where this makes a run shorter: those
        that are spread evenly among equals have the most computing between them."""
        cost = self.cost if self.has_cost else replace(
            self.cost, bytes_per_second=best.bytes_per_run / max(self.steps, 1))
        shortest = self.run_seconds(best, cost)
        family = self._family(lookahead)
        alike = defaultdict(list)
        for position, c in enumerate(self.candidates):
            alike[c.nbytes, c.alignment, c.file_bytes].append(position)
        for members in alike.values():
            now = {p for p, c in enumerate(self.candidates) if c.weight in best.offsets}
            count = len(now.intersection(members))
            if count in (0, len(members)):
                continue
            for phase in PHASES:
                even = {members[int((number + phase) * len(members) / count)]
                        for number in range(count)}
                candidate_set = family.set_of(tuple(sorted(now.difference(members) | even)))
                found = self._made(candidate_set.streamed, lookahead, max_lookahead)
                if found.peak_bytes > self.budget or found.bytes_per_run > best.bytes_per_run:
                    continue
                seconds = self.run_seconds(found, cost)
                if seconds < shortest:
                    best, shortest = found, seconds
        return best

    def _minimum(self, lookahead: int) -> tuple[StreamedSet, int]:
        """The set of weights that needs the smallest budget, and that budget."""
        if lookahead not in self._minima:
            smallest = self._family(lookahead).everything()
            self._minima[lookahead] = smallest, min(
                self._made(streamed, lookahead, lookahead).peak_bytes
                for streamed in (smallest.streamed, ()))
        return self._minima[lookahead]

    def _too_small(self, smallest: StreamedSet, lookahead: int, minimum: int) -> str:
        plan = self._made(smallest.streamed, lookahead, lookahead)
        parts = (f"{plan.fixed_bytes:,} for everything but weights, {plan.resident_bytes:,} of "
                 f"weights that stay, {plan.pool_bytes:,} of a pool for {len(plan.streamed)} "
                 f"weights at a lookahead of {lookahead}")
        less = self.minimum(0) if lookahead else minimum
        hint = f"; a lookahead of 0 needs {less:,}" if less < minimum else ""
        return f"memory_budget={self.budget:,}: expected at least {minimum:,} bytes ({parts}{hint})"

    def _family(self, lookahead: int) -> Family:
        if lookahead not in self._families:
            self._families[lookahead] = Family(self.candidates, lookahead)
        return self._families[lookahead]

    def run_seconds(self, plan: StreamPlan, cost: Cost) -> float:
        return simulate_run(plan, cost.submission_seconds(plan.submissions),
                            {w: cost.weight_seconds(self.weight_table[w].nbytes)
                             for w in plan.streamed}).total

    def _made(self, streamed: Sequence[int], lookahead: int, max_lookahead: int) -> StreamPlan:
        chosen = [self.candidates[position] for position in streamed]
        arrangement = arrange(chosen, self.steps, self.ends, lookahead, max_lookahead)
        weights = tuple(interval.weight for interval in arrangement.intervals)
        resident = tuple(sorted(set(range(len(self.weight_table))).difference(weights)))
        bits = 0xFFFFFFFF
        for weight in weights:
            bits &= self.needs[weight][2]
        return StreamPlan(
            resident=resident, streamed=weights, submissions=arrangement.submissions,
            offsets={t.weight: t.offset for t in arrangement.intervals},
            records=tuple(records_of(arrangement)), pool_bytes=arrangement.pool_bytes,
            alignment=arrangement.alignment, type_bits=bits,
            bytes_per_run=sum(c.file_bytes for c in chosen), lookahead=arrangement.lookahead,
            fixed_bytes=self.fixed_bytes, resident_bytes=self.resident_bytes(resident),
            notes=self._notes(arrangement, lookahead))

    def _notes(self, arrangement: Arrangement, lookahead: int) -> tuple[str, ...]:
        notes = list(self.notes)
        if not arrangement.intervals:
            return (*notes, "every weight stays on the device")
        if arrangement.lookahead < lookahead:
            notes.append(f"lookahead {lookahead} cut to {arrangement.lookahead}: only "
                         f"{arrangement.lookahead + 1} submissions wait for weights")
        if arrangement.late:
            notes.append(f"{arrangement.late} of {len(arrangement.intervals)} reloads start later "
                         f"than {arrangement.lookahead} sync points ahead, when their places are "
                         "free")
        return tuple(notes)
