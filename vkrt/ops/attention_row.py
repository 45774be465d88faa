"""Attention of few queries over a cache: a workgroup for each query of each head, where the driver
profile says that workgroups share (shaders/attention/attention_row.comp).

The scores stay in the memory that the group shares, so that one dispatch does what three do for
blocks of queries (`vkrt.ops.attention`), and keys are divided among the members of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.work.target import GROUP, Target
from vkrt.work.tensor import Operand

# Limits of the shader: rows of a cache, texels of a head, members of a group
MOST_KEYS, MOST_TEXELS, MOST_MEMBERS = 2048, 64, 256
# The most groups, as a multiple of those that use all lanes. With more, blocks of queries are
# better, because they read the keys fewer times.
FILL = 2
# Bytes that a group shares
SHARED_BYTES = 4 * MOST_KEYS + 16 * MOST_TEXELS + (4 + 16) * MOST_MEMBERS


def members_for(target: Target, groups: int, keys: int, texels: int) -> int:
    """Members of each of `groups` groups, a power of two. 0 where the kernel cannot be used, or
    where blocks of queries are better: beyond `FILL` times the groups that use all lanes.

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


def attend_rows(cx, params: Sequence, result: Operand, reads: list[Operand], variant: str, *,
                groups: int, keys: int, texels: int) -> bool:
    """Dispatches attention of `groups` queries of heads without a mask; False where it cannot, or
    should not.

    Args:
        params: those of attention.glsl for one block of all queries, then the scale and the
            elements of a head.
        reads: the queries, the keys, the values, and the operand that holds the position.
        variant: the dtypes of the cache and of the result.
    """
    members = members_for(cx.target, groups, keys, texels)
    if not members or cx.compiled("attention_row", reads, variant) is None:
        return False
    each = max(members // max(texels, 1), 1)
    cx.share("attention_row", params, [result], reads, groups, size=members,
             dtype=variant,
             loops=-(-keys // members) * (texels + 2) + -(-keys // each) + each
             + 2 * members.bit_length())
    return True
