"""Spilling: where the copies are and what the arena becomes."""

import pytest
from plan_samples import Maker, exact_requirements
from spill_samples import interpret, moved_bytes, moves, placed, run_spill

from vkrt.errors import InputError
from vkrt.plan.plan import plan
from vkrt.plan.stream.spill import Spill
from vkrt.work.command_list import CommandList


def skip_over_a_wide_middle():
    """x -> a -> b -> c -> d -> e -> y, which reads a again."""
    make = Maker()
    x = make.input(1024)
    a, b, c, d, e, y = (make.temporary(n) for n in (4096, 1024, 8192, 8192, 1024, 4096))
    make.chain(x, a, b, c, d, e)
    make.step([y], [e, a])
    make.output(y)
    return make.work, a


def unet(depth: int, base: int = 1 << 14) -> CommandList:
    """Maps of the way down that the way up reads: half the bytes with every level."""
    make = Maker()
    now, skips = make.input(base), []
    for level in range(depth):
        kept, less = make.temporary(base >> level), make.temporary(base >> (level + 1))
        make.chain(now, kept, less)
        skips.append(kept)
        now = less
    for level in reversed(range(depth)):
        wide, narrow = make.temporary(base >> level), make.temporary(base >> level)
        make.step([wide], [now])
        make.step([narrow], [wide, skips[level]])
        now = narrow
    make.output(now)
    return make.work


def test_a_skip_connection():
    work, a = skip_over_a_wide_middle()
    assert placed(work).activation_bytes == 4096 + 8192 + 8192
    spilled, report = run_spill(work, 16384, lookahead=0)
    # Behind step 1, the last but one reader, and right before step 5.
    assert report.spills == (Spill(a.storage.id, 4096, after=1, before=5, use=5),)
    assert moves(spilled) == [(2, "spill"), (6, "reload")]
    assert (report.arena_before, report.arena_after) == (20480, 16384)
    assert placed(spilled).activation_bytes == 16384
    assert (moved_bytes(report), report.host_bytes) == (8192, 4096)
    out, back = spilled.steps[2], spilled.steps[6]
    assert out.reads[0].storage is a.storage and out.writes[0].storage.role == "spill"
    assert back.reads[0].storage is out.writes[0].storage
    fresh = back.writes[0].storage
    assert (fresh.role, fresh.nbytes) == ("activation", 4096) and fresh is not a.storage
    assert spilled.steps[7].reads[1].storage is fresh
    assert [spilled.storages[i].id for i in range(len(spilled.storages))] == list(
        range(len(spilled.storages)))


def test_copied_back_ahead_where_there_is_room():
    """Beside d and e there is room for it; beside c and d there is not."""
    work, a = skip_over_a_wide_middle()
    for lookahead, before in ((1, 4), (2, 4), (9, 4)):
        spilled, report = run_spill(work, 16384, lookahead=lookahead)
        assert report.spills == (Spill(a.storage.id, 4096, after=1, before=before, use=5),)
        assert moves(spilled) == [(2, "spill"), (5, "reload")]
        assert report.arena_after == placed(spilled).activation_bytes == 16384
    assert run_spill(work, 16384)[1].spills[0].before == 4


def test_nothing_to_do_within_the_limit():
    work, _ = skip_over_a_wide_middle()
    same, report = run_spill(work, 20480)
    assert same is work and report.spills == () and report.notes == ()
    assert run_spill(work, 20479)[1].spills != ()


def test_unified_gains_nothing():
    work, _ = skip_over_a_wide_middle()
    same, report = run_spill(work, 0, unified=True)
    assert same is work and report.spills == ()
    assert report.arena_after == report.arena_before == plan(work, exact_requirements
                                                             ).activation_bytes
    assert report.notes == ("nothing to gain by spilling: the device computes in the host's "
                            "memory",)


def test_nothing_idle_where_it_is_fullest(make):
    """The widest moment has nothing but what its step reads and writes."""
    x, a, b, c, y = make.input(64), *(make.temporary(n) for n in (64, 1024, 1024, 64))
    make.chain(x, b, c, a, y)
    make.output(y)
    work = make.work
    same, report = run_spill(work, 1000)
    assert same is work and report.arena_after > 1000 and report.spills == ()
    assert report.notes == ("nothing to gain by spilling: no idle activation lies in the moments "
                            "of most bytes",)


def test_as_near_as_it_gets():
    """Below what one step needs nothing helps; more is not spilled than that takes."""
    work, a = skip_over_a_wide_middle()
    _, report = run_spill(work, 100)
    assert report.arena_after == 16384
    assert [spill.storage for spill in report.spills] == [a.storage.id]
    assert "cannot be brought to 100 B" in report.notes[1]


@pytest.mark.parametrize("depth", [2, 3, 5, 8])
def test_unet(depth):
    """All skips but the last fit in host memory while the lower levels are computed.

    At the top the way up needs three maps of full size, at the bottom next to nothing.
    """
    work, base = unet(depth), 1 << 14
    before = placed(work).activation_bytes
    least = 3 * base - base  # y is in the host's memory: the wide map and the skip
    spilled, report = run_spill(work, 0, lookahead=0)
    assert report.arena_before == before
    assert report.arena_after == placed(spilled).activation_bytes
    # The second step of the top level: skip and wide; its output is in the host's memory. On the
    # way to it: the level below's result and the wide map, with the skip spilled.
    assert report.arena_after == max(least, base + base // 2)
    assert interpret(work) == interpret(spilled)


def deep_and_wide() -> CommandList:
    """Five skips of equal size, and a bottom that needs room for two of them."""
    make = Maker()
    now, skips = make.input(64), []
    for _ in range(5):
        skip, small = make.temporary(1024), make.temporary(64)
        make.chain(now, skip, small)
        skips.append(skip)
        now = small
    wide = [make.temporary(1024) for _ in range(3)]
    make.chain(now, *wide)
    now = wide[-1]
    for skip in reversed(skips):
        out = make.temporary(64)
        make.step([out], [now, skip])
        now = out
    make.output(now)
    return make.work


@pytest.mark.parametrize("kept", range(5))
def test_no_more_than_needed(kept):
    """Each skip that may stay is one less to copy, down to what a step needs at once."""
    work = deep_and_wide()
    full = 7 * 1024
    assert placed(work).activation_bytes == full
    limit = 2048 + 64 + 1024 * kept
    spilled, report = run_spill(work, limit, lookahead=0)
    assert len(report.spills) == 5 - kept and report.arena_after <= limit
    assert report.arena_after == placed(spilled).activation_bytes
    # A skip is copied behind its second reader, at the bottom of its level.
    assert all(spill.after % 2 == 1 and spill.before == spill.use >= 13 for spill in report.spills)
    assert moved_bytes(report) == 2048 * len(report.spills)
    assert report.host_bytes == 1024 * len(report.spills)
    assert interpret(work) == interpret(spilled)


def test_one_copy_serves_two_idle_times():
    """Read again and not written in between: the host's copy is still good."""
    for in_place in (False, True):
        make = Maker()
        x, a, b, y = make.input(64), make.temporary(1024), make.temporary(64), make.temporary(64)
        wide = [make.temporary(2048) for _ in range(4)]
        make.step([a], [x])
        make.chain(x, *wide[:2])
        make.step([a if in_place else b], [wide[1], a])
        make.chain(x, *wide[2:])
        make.step([y], [wide[3], a])
        make.output(y)
        spilled, report = run_spill(make.work, 4096, lookahead=0)
        assert [(s.after, s.before, s.copied) for s in report.spills] == [
            (0, 3, True), (3, 6, in_place)]
        assert [kind for _, kind in moves(spilled)] == (
            ["spill", "reload", "spill", "reload"] if in_place else ["spill", "reload", "reload"])
        assert moved_bytes(report) == (4 if in_place else 3) * 1024
        assert report.host_bytes == 1024
        assert interpret(make.work) == interpret(spilled)


def test_parts_of_a_storage(make):
    """What is written half by half is copied whole, and read half by half."""
    x, y = make.input(64), make.temporary(64)
    storage = make.storage("activation", 1024)
    halves = [make.operand(storage, 0, 512), make.operand(storage, 512)]
    wide = [make.temporary(2048) for _ in range(3)]
    make.step([halves[0]], [x])
    make.chain(x, *wide)
    make.step([halves[1]], [wide[-1]])
    make.step([y], [halves[1], halves[0]])
    make.output(y)
    spilled, report = run_spill(make.work, 4096, lookahead=0)
    assert [(s.after, s.before) for s in report.spills] == [(0, 4)]
    writes = spilled.steps[-2].writes[0]
    assert writes.storage is not storage and (writes.offset, writes.nbytes) == (512, 512)
    assert interpret(make.work) == interpret(spilled)


def test_who_is_not_spilled():
    """Inputs, outputs, images, and what a host call touches."""
    for kind in ("input", "output", "image", "host", "buffer"):
        make = Maker()
        x = make.input(64)
        a = make.input(1024) if kind == "input" else make.temporary(1024, image=kind == "image")
        wide = [make.temporary(2048) for _ in range(3)]
        y = make.temporary(64)
        make.step([a], [x])
        make.chain(x, *wide)
        if kind == "host":
            make.host_call([y], [a])
        else:
            make.step([y], [a, wide[-1]])
        if kind == "output":
            make.outputs.append(a)
        make.output(y)
        work = make.work
        spilled, report = run_spill(work, 0)
        assert bool(report.spills) == (kind == "buffer"), kind
        assert (spilled is work) == (kind != "buffer")


def test_arguments():
    work, _ = skip_over_a_wide_middle()
    for options in ({"limit": -1}, {"limit": 0, "lookahead": -1}):
        with pytest.raises(InputError, match="expected 0 or more"):
            run_spill(work, **options)
    assert run_spill(CommandList(), 0)[1].arena_after == 0


def wide_moments(sizes, first: int = 64) -> CommandList:
    """Activations of these sizes, beside the last of them `first` bytes more, then two moments of
    wide ones, then all of them read."""
    make = Maker()
    x, kept = make.input(64), [make.temporary(size) for size in sizes]
    beside = make.temporary(first)
    make.step([beside], [x])
    for activation in kept[:-1]:
        make.step([activation], [x])
    make.step([kept[-1]], [beside])
    wide = [make.temporary(1 << 16) for _ in range(3)]
    make.chain(x, *wide)
    y = make.temporary(64)
    make.step([y], [wide[-1], *kept])
    make.output(y)
    return make.work


def test_the_one_that_is_large_enough():
    """Three times too large would do as well."""
    work = wide_moments([3 << 14, 1 << 14, 1 << 13])
    full = placed(work).activation_bytes
    for excess, storage in ((1 << 14, 2), (1 << 13, 3), (3 << 14, 1)):
        spilled, report = run_spill(work, full - excess)
        assert [spill.storage for spill in report.spills] == [storage]
        assert report.arena_after == placed(spilled).activation_bytes == full - excess


def test_no_further_than_the_largest_step():
    """What is left at the step that needs most is room for others at the other moments."""
    unit = 1 << 14
    work = wide_moments([unit, unit], first=9 * unit)
    # The second is made beside the large one: it needs 10 units, and 11 with the first. At the two
    # wide moments both are beside 8 units.
    spilled, report = run_spill(work, 0, lookahead=0)
    assert (report.arena_before, report.arena_after) == (11 * unit, 10 * unit)
    assert report.spills == (Spill(1, unit, after=1, before=6, use=6),)
    assert placed(spilled).activation_bytes == 10 * unit
