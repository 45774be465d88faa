"""Attention of few queries over a cache: a workgroup for each query of each head, where the driver
profile says that workgroups share (shaders/attention/attention_row.comp).

All scores stay in the memory that the group shares, and keys are divided among its members.
"""

from __future__ import annotations

from vkrt.ops.attention_tile import Attention
from vkrt.work.target import GROUP, Target

# Limits of the shader: rows of a cache, texels of a head, members of a group
MOST_KEYS, MOST_TEXELS, MOST_MEMBERS = 2048, 64, 256
# The most groups, as a multiple of those that use all lanes. With more, tiles are better, because
# they read the keys fewer times.
FILL = 2
# Bytes that a group shares
SHARED_BYTES = 4 * MOST_KEYS + 16 * MOST_TEXELS + (4 + 16) * MOST_MEMBERS


def members_for(target: Target, groups: int, keys: int, texels: int) -> int:
    """Members of each of `groups` groups, a power of two. 0 where the kernel cannot be used, or
    where tiles are better: beyond `FILL` times the groups that use all lanes.

    Args:
        keys: rows of the cache.
        texels: of a head.
    """
    if (not target.tuning.shares or target.refuses_teams or keys > MOST_KEYS
            or texels > MOST_TEXELS or target.max_shared < SHARED_BYTES
            or groups * GROUP > FILL * target.tuning.lanes):
        return 0
    members = GROUP
    while (2 * members <= min(MOST_MEMBERS, target.max_invocations, keys)
           and 2 * members * groups <= target.tuning.lanes):
        members *= 2
    return members


def attend_rows(cx, what: Attention) -> bool:
    """Dispatches attention without a mask; False where it has one, where the kernel cannot do it,
    or where tiles are better."""
    batch, queries, heads, _ = what.query.sizes
    groups, keys, texels = batch * queries * heads, what.keys.sizes[1], what.query.grid[2]
    reads = [what.query, what.keys, what.values, what.position[0]]
    members = members_for(cx.target, groups, keys, texels)
    if (what.mask is not None or not members
            or cx.compiled("attention_row", reads, what.variant) is None):
        return False
    each = max(members // max(texels, 1), 1)
    cx.share("attention_row", what.params, [what.result], reads, groups, size=members,
             dtype=what.variant,
             loops=-(-keys // members) * (texels + 2) + -(-keys // each) + each
             + 2 * members.bit_length())
    return True
