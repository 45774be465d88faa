"""Spilling in any program: every step reads the same, and the report says what was done."""

from dataclasses import replace

import pytest
from plan_samples import hazard, random_work
from spill_samples import interpret, moved_bytes, moves, placed, run_spill

from vkrt.plan.barriers import barriers
from vkrt.plan.stream.spill import Move


@pytest.mark.parametrize("seed", [*range(30), 236, 340, 847])
def test_every_step_reads_what_it_would_have(seed):
    work = random_work(seed, steps=50)
    steps = [replace(step) for step in work.steps]
    expected = interpret(work)
    before = placed(work).activation_bytes
    for part in (0.0, 0.6, 0.9):
        arenas = []
        for lookahead in (0, 3):
            spilled, report = run_spill(work, int(part * before), lookahead=lookahead)
            assert interpret(spilled) == expected
            result = placed(spilled)
            assert report.arena_before == before >= report.arena_after
            assert result.activation_bytes == report.arena_after
            assert (report.arena_after < before) == bool(report.spills) == (spilled is not work)
            arenas.append(report.arena_after)
            # Where the report says they are, and away for a step at least.
            number, before_step = 0, []
            for step in spilled.steps:
                if not isinstance(step, Move):
                    number += 1
                elif step.kind == "reload":
                    before_step.append((number, step.writes[0].nbytes))
            assert sorted(before_step) == sorted((s.before, s.nbytes) for s in report.spills)
            assert all(s.after + 1 < s.before <= s.use <= s.before + lookahead
                       for s in report.spills)
            kinds = [kind for _, kind in moves(spilled)]
            assert kinds.count("reload") == len(report.spills)
            assert kinds.count("spill") == sum(spill.copied for spill in report.spills)
            moved = sum(step.writes[0].nbytes for step in spilled.steps if isinstance(step, Move))
            assert moved == moved_bytes(report)
            # A copy waits for what wrote its source and for who still reads its target.
            barriers_before = barriers(spilled, result)
            for late, step in enumerate(spilled.steps):
                for early, other in enumerate(spilled.steps[:late]):
                    if (isinstance(step, Move) or isinstance(other, Move)) and hazard(
                            result, other, step):
                        assert any(barriers_before[early + 1:late + 1]) or any(
                            not isinstance(s, Move) and hasattr(s, "kernel")
                            for s in spilled.steps[early:late + 1])
        # What is copied back early takes no room that was asked for.
        assert arenas[1] <= max(arenas[0], int(part * before))
    # The command list itself is untouched.
    assert [(s.writes, s.reads) for s in work.steps] == [(s.writes, s.reads) for s in steps]


def test_packing_that_needs_more_than_is_alive():
    """Then more is spilled than the bytes alive say; and what that makes needless is not."""
    for seed, part, arena, count in ((460, 0.9, 800, 5), (178, 0.0, 880, 2), (346, 0.9, 1248, 2)):
        work = random_work(seed, steps=50)
        limit = int(part * placed(work).activation_bytes)
        report = run_spill(work, limit, lookahead=0)[1]
        assert (report.arena_after, len(report.spills)) == (arena, count)


def test_random_programs_spill():
    """Or the test above would say little."""
    reports = [run_spill(work, 0)[1] for work in (random_work(seed, steps=50)
                                                  for seed in range(40))]
    assert sum(bool(report.spills) for report in reports) > 15
    assert any(spill.before < spill.use for report in reports for spill in report.spills)
    assert any(not spill.copied for report in reports for spill in report.spills)
