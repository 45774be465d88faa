"""Attention of few queries by a workgroup for each: when, and what it makes of every size."""

from dataclasses import replace

import pytest
from harness import Variant, check
from samples.attention import _cached, _custom
from small_graphs import families_of
from support import open_method
from test_sharing import DEFAULT, sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.lowering.lowering import lower
from vkrt.ops.attention_row import MOST_KEYS, MOST_TEXELS, members_for
from vkrt.work.target import Target

SHARING = Target(max_texels=1 << 26, tuning=replace(DEFAULT.tuning, lanes=4096),
                 max_invocations=1024)
# Queries, heads, heads of the cache, elements of a head, rows of the cache, position
SIZES = [
    # Heads of one texel, and of the most
    (1, 2, 1, 4, 70, 69), (1, 1, 1, 4 * MOST_TEXELS, 9, 8),
    # A head whose texels do not divide a group
    (1, 3, 3, 20, 300, 299),
    # Keys: one less than a group, as many, one more; the most
    (1, 2, 2, 8, 80, 62), (1, 2, 2, 8, 80, 63), (1, 2, 2, 8, 80, 64),
    (1, 2, 1, 8, MOST_KEYS, MOST_KEYS - 1),
    # Heads of no whole texels
    (2, 4, 2, 6, 40, 30),
    # Several queries, each of which sees one key more
    (5, 6, 2, 16, 140, 126)]


@pytest.mark.parametrize(("groups", "keys", "texels", "changes", "members"), [
    (1, 2048, 16, {}, 256), (1, 128, 16, {}, 128), (1, 127, 16, {}, 64), (1, 1, 16, {}, 64),
    (16, 2048, 16, {}, 256), (17, 2048, 16, {}, 128), (128, 2048, 16, {}, 64),
    (129, 2048, 16, {}, 0), (1, MOST_KEYS + 1, 16, {}, 0), (1, 64, MOST_TEXELS + 1, {}, 0),
    (1, 2048, 16, {"max_invocations": 128}, 128), (1, 2048, 16, {"max_shared": 8192}, 0),
    (1, 2048, 16, {"refused": frozenset(("softmax_team.texel.f32",))}, 0)])
def test_members(groups, keys, texels, changes, members):
    assert members_for(replace(SHARING, **changes), groups, keys, texels) == members
    assert members_for(Target(), groups, keys, texels) == 0


def kernels(sizes, **changes) -> set[str]:
    graph = Variant(_custom(sizes), False, "plain").case().graph
    return {name for name in families_of(lower(graph, replace(SHARING, **changes)))
            if name.startswith("attention")}


def test_a_workgroup_for_each_or_tiles():
    assert kernels(SIZES[0]) == {"attention_row"}
    # More queries than lanes, and what the driver does not compile
    assert kernels((129, 1, 1, 8, 140, 0)) == {"attention_tile"}
    assert kernels(SIZES[0], refused=frozenset(("attention_row.texel.f32",))) == {"attention_tile"}


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("sizes", SIZES, ids=["x".join(map(str, sizes)) for sizes in SIZES])
def test_results(sizes, half, storage, device):
    samples = [_cached(sizes), _cached(sizes, late=sizes[5] > 2), _cached(sizes, causal=False),
               _cached(sizes, batch=3)]
    for sample in samples:
        case = Variant(sample, half, "plain").case()
        with overridden(sharing(policy_of(device.info))), \
                open_method(case.graph, case.data, device, storage=storage) as method:
            assert any(getattr(step, "shader", "").startswith("attention_row")
                       for step in method.work.steps)
            check(method.execute(case.inputs), case)
