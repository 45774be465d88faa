"""Quantized tensors: operators of one element, sums, and the shuffling of pixels."""

from __future__ import annotations

import math

from vkrt.ops.broadcast import broadcast
from vkrt.ops.quantization import INT8, need_scale, need_zero
from vkrt.ops.registry import op
from vkrt.ops.resample import pixel_shuffle, pixel_shuffle_sizes
from vkrt.ops.sizes import broadcast as broadcast_sizes
from vkrt.work.tensor import Operand


def _need(*steps: float) -> None:
    """Checks scales and zeros, one after the other."""
    for scale, zero in zip(steps[::2], steps[1::2], strict=True):
        need_scale(scale, "scale")
        need_zero(int(zero), "zero_point")


def requantize(cx, result: Operand, source: Operand, *, zero: int, scale: float,
               bounds: tuple[float, float] = (-math.inf, math.inf), inverse: float,
               new_zero: int) -> None:
    """Dispatches the change to another scale, of which it gets the inverse, and zero, with the real
    numbers limited to `bounds`."""
    cx.map_texels("requantize", result, [source], [zero, scale, *bounds, inverse, new_zero])


def _relu_sizes(x, *steps):
    _need(*steps)
    return (x,)


@op("et_vk.q8ta_relu.default", "input:T.int8 input_scale:f input_zero_point:i output_scale:f "
    "output_zero_point:i", sizes=_relu_sizes, dtypes=INT8)
def _relu(cx, node, x, scale, zero, new_scale, new_zero):
    source = cx.read(x)
    requantize(cx, cx.write(node.outs[0], source.order, over=(source,)), source, zero=zero,
               scale=scale, bounds=(0.0, math.inf), inverse=1 / new_scale, new_zero=new_zero)


def _add_sizes(a, b, *numbers):
    *steps, _alpha = numbers
    _need(*steps)
    return (broadcast_sizes(a, b),)


# The second name is executorch 1.1's.
@op("et_vk.q8ta_add.default et_vk.add_q8ta_q8ta_q8to.default", "input_a:T.int8 input_b:T.int8 "
    "input_a_scale:f input_a_zero_point:i input_b_scale:f input_b_zero_point:i output_scale:f "
    "output_zero_point:i alpha:f",
    sizes=_add_sizes, dtypes=INT8, broadcasts="input_a input_b")
def _add(cx, node, a, b, scale_a, zero_a, scale_b, zero_b, scale, zero, alpha):
    """a + alpha * b."""
    out = node.outs[0]
    inputs = broadcast(cx, (a, b), out.sizes, (a.dtype, b.dtype))
    params = inputs.params(cx)
    result = cx.write(out, inputs.order, over=inputs.over)
    cx.map_texels("q8_add", result, inputs.operands,
                  [*params, scale_a, zero_a, scale_b, zero_b, 1 / scale, zero, alpha])


def _shuffle_sizes(x, scale, zero, inverse, new_zero, factor):
    need_scale(inverse, "output_inv_scale")
    _need(scale, zero, 1 / inverse, new_zero)
    return pixel_shuffle_sizes(x, factor)


@op("et_vk.q8ta_pixel_shuffle.default", "input:T.int8 input_scale:f input_zero_point:i "
    "output_inv_scale:f output_zero_point:i upscale_factor:i", sizes=_shuffle_sizes, dtypes=INT8)
def _shuffle(cx, node, x, scale, zero, inverse, new_zero, factor):
    """Moves the elements, then brings them to the new scale in place."""
    result = pixel_shuffle(cx, node.outs[0], x, factor)
    # Where no number would change by half a step, all stay as they are.
    if zero != new_zero or abs(scale * inverse - 1) * 255 >= 0.25:
        requantize(cx, result, result, zero=zero, scale=scale, inverse=inverse, new_zero=new_zero)
