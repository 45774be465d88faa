"""The places of a grid's cells, to which detectors add their predictions."""

from __future__ import annotations

from vkrt.ops.dtypes import FLOAT
from vkrt.ops.registry import op
from vkrt.ops.sizes import fail


def grid_priors_sizes(x, _stride, _offset):
    if len(x) < 2:
        fail("self", f"expected at least rank 2, got sizes {list(x)}")
    return ((x[-2] * x[-1], 2),)


@op("et_vk.grid_priors.default", "self:T stride:i offset:f", sizes=grid_priors_sizes, dtypes=FLOAT)
def _grid_priors(cx, node, x, stride, offset):
    """[H * W, 2]: (x + offset) * stride and (y + offset) * stride for an image [.., H, W]."""
    result = cx.write(node.outs[0])
    cx.dispatch("grid_priors", [*result.grid, x.sizes[-1], float(stride), offset], [result], [],
                result.texels)
