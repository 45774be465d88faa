"""The plan for streaming weights through a pool, as plain data.

Time is counted in submissions: runs of steps that are submitted together. It is cyclic, since the
program runs again and again: behind the last submission of a run comes the first of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_LOOKAHEAD = 4


@dataclass(frozen=True)
class Submission:
    """Steps that are submitted together."""

    # Its steps are `first` .. `end` - 1. A host call is the last of its submission.
    first: int
    end: int
    # Streamed weights that must have arrived before it starts, in the order of arrival
    waits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reload:
    """A weight's bytes are brought to its place; from here on the place is the weight's."""

    weight: int  # index in the weight table
    # 0 when the transfer starts in the run that waits for it; 1 when it starts in the run before,
    # or before the first run
    ahead: int
    # The transfer may start once the device has completed this submission of that run; -1 (only
    # with `ahead` 0) is the moment the run begins
    after: int


@dataclass(frozen=True)
class Wait:
    """A submission may not start before a weight has arrived."""

    weight: int
    submission: int


@dataclass(frozen=True)
class Release:
    """A weight's place is free once a submission is complete."""

    weight: int
    submission: int


@dataclass(frozen=True)
class Cost:
    """What a run is expected to take."""

    step_seconds: tuple[float, ...]  # of every step, without transfers
    bytes_per_second: float  # of a transfer from the file to the pool
    reload_seconds: float = 0.0  # of every reload, whatever its size

    def weight_seconds(self, nbytes: int) -> float:
        return self.reload_seconds + nbytes / self.bytes_per_second

    def submission_seconds(self, submissions: tuple[Submission, ...]) -> tuple[float, ...]:
        return tuple(sum(self.step_seconds[s.first:s.end]) for s in submissions)


@dataclass(frozen=True)
class StreamPlan:
    """Which weights are streamed, through which places, and when."""

    resident: tuple[int, ...]  # weights that stay on the device, as indices in the weight table
    # Weights that are reloaded in every run, in the order they are waited for
    streamed: tuple[int, ...]
    submissions: tuple[Submission, ...]  # all steps, in order
    # Of each streamed weight in the pool, in bytes, by its index in the weight table
    offsets: Mapping[int, int] = field(default_factory=dict)
    # Everything that happens in a run, in order. First the reloads that start as the run begins
    # (`after` -1). Then for each submission the waits before it, the releases after it, and the
    # reloads that may start then.
    records: tuple[Reload | Wait | Release, ...] = ()
    pool_bytes: int = 0  # of the one pool: exactly to the end of its last place
    alignment: int = 1  # of the pool's memory
    type_bits: int = 0xFFFFFFFF  # memory types that suit every streamed weight
    bytes_per_run: int = 0  # bytes of the file that one run reads
    # Reloads may start this many sync points (submissions that wait for weights) ahead
    lookahead: int = 0
    # Of everything but weights, and of the weights that stay
    fixed_bytes: int = 0
    resident_bytes: int = 0
    minimum_budget: int = 0  # the smallest budget that can be planned for, in bytes
    notes: tuple[str, ...] = ()  # decisions worth telling the user, in plain words

    @property
    def peak_bytes(self) -> int:
        """Device bytes while the program runs."""
        return self.fixed_bytes + self.resident_bytes + self.pool_bytes

    @property
    def reloads(self) -> tuple[Reload, ...]:
        """The reloads in the order of the waits and of the transfers. Those with `ahead` 1 come
        first: they are what is transferred before the first run."""
        found = {r.weight: r for r in self.records if isinstance(r, Reload)}
        return tuple(found[weight] for weight in self.streamed)
