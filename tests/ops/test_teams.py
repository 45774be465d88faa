"""Which teams rows get, which kernels follow from that, and what they make of rare numbers."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from harness import Sample, make_case, normal
from small_graphs import shaders_of
from support import open_method, same_bits
from test_sharing import DEFAULT, offered, sharing

from vkrt.compiler import compiler
from vkrt.device.policy import overridden, policy_of
from vkrt.lowering.lowering import lower
from vkrt.ops.teams import parts_for, team_for
from vkrt.work.target import GROUP, Target

SHARING = Target(max_texels=1 << 26, tuning=replace(DEFAULT.tuning, lanes=4096))
AMAX, MEAN = "aten.amax.default", "aten.mean.dim"


@pytest.mark.parametrize(("rows", "count", "side_by_side", "members"), [
    (1, 3, False, None), (1, 4, False, 4), (1, 8, False, 8), (1, 9, False, 16),
    # Where all lanes have something to do anyway, a member has two texels.
    (100000, 4, False, 2), (100000, 33, False, 32), (1024, 8, False, 4), (512, 8, False, 8),
    (1, 100000, False, GROUP), (0, 100, False, None),
    # Neighbours read neighbouring rows: teams are only for lanes that would be idle.
    (4096, 100, True, None), (2048, 100, True, 2), (1000, 100, True, 4), (1, 100, True, GROUP),
])
def test_teams(rows, count, side_by_side, members):
    team = team_for(SHARING, rows, count, side_by_side)
    assert (team and team.members) == members
    assert team_for(Target(), rows, count, side_by_side) is None
    if team:
        cx = Mock()
        team.dispatch(cx, "reduce", [], [], [], rows)
        (_, params, _, _, groups), options = cx.share.call_args
        assert groups * GROUP // members >= rows
        assert options["features"] == (("subgroups",) if members == GROUP else ())
        assert params == [members, GROUP // members if side_by_side else 1]


@pytest.mark.parametrize(("rows", "count", "parts"), [
    (1, 1024, 1), (1, 2048, 2), (1, 1 << 20, 64), (16, 1 << 20, 4), (64, 1 << 20, 1)])
def test_few_long_rows_are_split(rows, count, parts):
    assert parts_for(SHARING, rows, count) == parts
    assert parts_for(Target(), rows, count) == 1


def kernels(sample: Sample, **changes) -> list[str]:
    return shaders_of(lower(make_case(sample).graph, replace(SHARING, **changes)))


def test_the_first_variant_that_is_allowed():
    """The plain one where a team is less than a group: which invocations are a subgroup is not
    known."""
    long, short = (Sample(AMAX, [normal(6, size), [1], False], lambda x, *_: x.max(1))
                   for size in (600, 64))
    able = frozenset(("subgroups", "dot"))
    assert "reduce_team.texel.f32.subgroups" in kernels(long, features=able)
    assert "reduce_team.texel.f32" in kernels(long)
    assert "reduce_team.texel.f32" in kernels(short, features=able)
    assert "reduce.texel.f32" in kernels(long, tuning=Target().tuning, features=able)


def run(sample: Sample, device, features) -> list[np.ndarray]:
    case = make_case(sample)
    with (overridden(sharing(policy_of(device.info), features)),
          open_method(case.graph, case.data, device) as method):
        assert any("_team" in getattr(step, "shader", "") for step in method.work.steps)
        first, second = (method.execute(case.inputs) for _ in range(2))
        same_bits(first, second)
        return first


@pytest.mark.parametrize("op", [AMAX, "aten.amin.default"])
def test_a_nan_stays_and_infinities_count(op, device):
    """In whichever member's part of the row it is; other rows of its group do not see it."""
    x = normal(8, 600)
    x[1, 7], x[2, 599], x[3, 0], x[4] = np.nan, np.inf, -np.inf, np.inf
    x[5], x[6, 300] = -np.inf, np.nan
    best = np.max if op == AMAX else np.min
    for features in offered(device):
        for rows in (x, x[:, :40]):
            sample = Sample(op, [rows, [1], False], lambda x, *_: best(x, axis=1))
            np.testing.assert_array_equal(run(sample, device, features)[0], best(rows, axis=1))


def test_long_rows_and_columns(device):
    """In parts, each with a team; and along a dimension that is not packed."""
    x = normal(3, 40000) + 1
    for dim in ((1,), (0, 1)):
        sample = Sample(MEAN, [x, list(dim), False], lambda x, d, *_: x.mean(tuple(d)))
        for features in ((), *offered(device)[1:2]):
            np.testing.assert_allclose(run(sample, device, features)[0],
                                       x.astype(np.float64).mean(dim), rtol=1e-6)
    x = normal(700, 12)
    sample = Sample("aten._softmax.default", [x, 0, False],
                    lambda x, *_: np.exp(x) / np.exp(x).sum(0))
    wanted = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(run(sample, device, ())[0], wanted / wanted.sum(0), rtol=1e-5)


def test_more_groups_than_a_dimension_has(device, monkeypatch):
    """The groups beyond the last row write nothing."""
    target_of = compiler.target_of
    monkeypatch.setattr(compiler, "target_of",
                        lambda *args: replace(target_of(*args), max_groups=3))
    x = normal(11, 300)
    sample = Sample(AMAX, [x, [1], False], lambda x, *_: x.max(1))
    for features in ((), *offered(device)[1:2]):
        np.testing.assert_array_equal(run(sample, device, features)[0], x.max(1))
