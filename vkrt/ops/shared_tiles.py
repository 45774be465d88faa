"""Products whose workgroups share tiles of both operands, where the driver profile says so.

See shaders/common/shared_tile.glsl. On CPU drivers each invocation has a register tile of its own
(`vkrt.ops.tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence

from vkrt.ops.tiles import invocations
from vkrt.work.target import GROUP, Target
from vkrt.work.tensor import Operand

# Rows and columns of the result that a workgroup of NAME_shared_32 and NAME_shared_64 makes
SMALL, LARGE = 32, 64
# The most slices of a workgroup of the smaller tile, and the texels of the summed dimension that a
# slice takes at a time. A slice has at least so many texels.
MOST_SLICES, STEP = 4, 8
# Texels of both operands that a slice shares, and bytes of the sums that it hands to another slice
SHARED_TEXELS, SUM_BYTES = 2 * STEP * (SMALL + 2), 4 * SMALL * SMALL
# By dtype of the source: the variants beside the plain one, see `Lowering.share`. The larger tile
# for 8-bit numbers only exists for words of 4.
FEATURES: dict[str, tuple[str, ...]] = {"float32": (), "float16": ("float16",)}


def multiply_shared(cx, family: str, params: Sequence, result: Operand, reads: list[Operand],
                    dtype: str, *, rows: int, columns: int, count: int = 1, texels: int,
                    sides: Sequence[int] = (SMALL, LARGE)) -> bool:
    """Dispatches `count` products of `rows` by `columns` by FAMILY_shared_32 or .._64; False
    where register tiles are better: where the driver profile says so, or where half of the smallest
    tile would be empty.

    The larger tile has twice the products for each texel read, and is taken where it leaves no
    lanes idle. The smaller one has several slices of the summed dimension where it leaves many.

    Args:
        reads: the source first.
        dtype: the variant.
        texels: of the summed dimension.
        sides: the tiles that there are.
    """
    source, target = reads[0], cx.target
    if not target.tuning.shares or 2 * min(rows, columns) <= SMALL:
        return False
    features = FEATURES.get(source.dtype, ("dot",))
    # The feature of the variant for each side, None where the driver does not compile it
    found = {side: cx.compiled(f"{family}_shared_{side}", reads, dtype, features) for side in sides}
    if found[SMALL] is None:
        return False

    def groups(side: int) -> int:
        return invocations((side, side), rows, columns, count=count)

    side = SMALL
    if (found.get(LARGE) is not None and min(rows, columns) > SMALL and source.dtype != "int8"
            and groups(LARGE) * GROUP >= target.tuning.lanes):
        side = LARGE
    slices = 1
    if side == SMALL:
        # Bytes of a texel in shared memory: of four floats, halves or bytes
        part = {"float16": 8, "dot": 4}.get(found[side], 4 if source.dtype == "int8" else 16)
        slices = slices_for(target, groups(side), texels, part)
    cx.share(f"{family}_shared_{side}", params, [result], reads, groups(side),
             size=slices * GROUP, features=features, dtype=dtype, loops=-(-texels // slices))
    return True


def slices_for(target: Target, groups: int, texels: int, part: int) -> int:
    """Slices of each of `groups` workgroups: as many as idle lanes and shared memory allow.

    Args:
        texels: of the summed dimension.
        part: bytes of a texel in shared memory.
    """
    slices = 1
    while (2 * slices <= MOST_SLICES and 2 * slices * groups * GROUP <= target.tuning.lanes
           and 2 * slices * GROUP <= target.max_invocations
           and 2 * slices * SHARED_TEXELS * part + slices * SUM_BYTES < target.max_shared
           and texels >= 2 * slices * STEP):
        slices *= 2
    return slices
