"""Shape rules of operators that slide a window (convolution, pooling) or resample an image."""

from __future__ import annotations

import math

from vkrt.ops.shapes.rules import (
    at_least,
    fail,
    need_rank,
    need_sizes,
    rule,
    spread,
    unsupported,
)

# Convolution


def convolved(spatial, kernel, stride, padding, dilation):
    """Spatial sizes after a convolution."""
    result = []
    for size, k, step, pad, dil in zip(spatial, kernel, stride, padding, dilation, strict=True):
        reach = dil * (k - 1) + 1
        if reach > size + 2 * pad:
            fail("weight", f"a kernel that reaches over {reach} elements is larger than the input "
                 f"of {size} with padding {pad}")
        result.append((size + 2 * pad - reach) // step + 1)
    return tuple(result)


def deconvolved(spatial, kernel, stride, padding, dilation, output_padding):
    """Spatial sizes after a transposed convolution."""
    result = []
    for size, k, step, pad, dil, extra in zip(spatial, kernel, stride, padding, dilation,
                                              output_padding, strict=True):
        if extra >= max(step, dil):
            fail("output_padding", f"expected less than stride or dilation ({step}, {dil}), got "
                 f"{extra}")
        length = (size - 1) * step - 2 * pad + dil * (k - 1) + extra + 1
        if length < 1 or size < 1:
            fail("padding", f"leaves {length} elements of an input of {size}")
        result.append(length)
    return tuple(result)


@rule("input:T weight:T bias:T? stride:[i] padding:[i] dilation:[i] transposed:b "
      "output_padding:[i] groups:i", "aten.convolution.default")
@rule("input:T weight:T bias:T? stride:[i] padding:[i] dilation:[i] transposed:b "
      "output_padding:[i] groups:i min:f? max:f?", "et_vk.conv_with_clamp.default")
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
                *_clamp):
    if len(x) < 3:
        fail("input", f"expected at least rank 3, got sizes {list(x)}")
    need_rank(weight, len(x), "weight")
    if len(x) > 4:
        unsupported("input", f"{len(x) - 2} spatial dimensions (sizes {list(x)}); vkrt has "
                    "convolutions of one and of two")
    if 0 in weight:
        unsupported("weight", f"no elements (sizes {list(weight)})")
    count = len(x) - 2
    stride = spread(stride, count, "stride", 1)
    padding = spread(padding, count, "padding", 0)
    dilation = spread(dilation, count, "dilation", 1)
    extra = spread(output_padding, count, "output_padding", 0)
    at_least(groups, 1, "groups")
    # A transposed one's weight is [in, out of a group, ..], else [out, in of a group, ..].
    if weight[0] % groups:
        fail("groups", f"{groups} does not divide the {weight[0]} channels of weight sizes "
             f"{list(weight)}")
    channels, out = weight[1] * groups, weight[0]
    if transposed:
        channels, out = out, channels
    if x[1] != channels:
        fail("input", f"expected {channels} channels for weight sizes {list(weight)} and {groups} "
             f"groups, got sizes {list(x)}")
    need_sizes(bias, (out,), "bias")
    if transposed:
        spatial = deconvolved(x[2:], weight[2:], stride, padding, dilation, extra)
    else:
        spatial = convolved(x[2:], weight[2:], stride, padding, dilation)
    return ((x[0], out, *spatial),)


# Pooling


def pooled(x, kernel, stride, padding, dilation, ceil_mode):
    """Sizes after pooling the last two dimensions."""
    need_rank(x, (3, 4), "self")
    if 0 in x[-3:]:
        fail("self", f"expected channels and pixels, got sizes {list(x)}")
    kernel = spread(kernel, 2, "kernel_size", 1)
    stride = spread(stride, 2, "stride", 1) if stride else kernel
    padding = spread(padding, 2, "padding", 0)
    dilation = spread(dilation, 2, "dilation", 1)
    spatial = []
    for size, k, step, pad, dil in zip(x[-2:], kernel, stride, padding, dilation, strict=True):
        reach = dil * (k - 1) + 1
        if pad > k // 2:
            fail("padding", f"expected at most half of the kernel of {k}, got {pad}")
        free = size + 2 * pad - reach
        if ceil_mode:
            count = -(-free // step) + 1
            # The last window has to begin within the input or its left padding.
            count -= (count - 1) * step >= size + pad
        else:
            count = free // step + 1
        if count < 1:
            fail("kernel_size", f"a window of {reach} is larger than the input of {size} with "
                 f"padding {pad}")
        spatial.append(count)
    return (*x[:-2], *spatial)


@rule("self:T kernel_size:[i] stride:[i] padding:[i] ceil_mode:b count_include_pad:b "
      "divisor_override:i?", "aten.avg_pool2d.default")
def avg_pool2d(x, kernel, stride, padding, ceil_mode, _include, divisor):
    if divisor == 0:
        fail("divisor_override", "expected a number other than 0")
    return (pooled(x, kernel, stride, padding, (1,), ceil_mode),)


@rule("self:T kernel_size:[i] stride:[i] padding:[i] dilation:[i] ceil_mode:b",
      "aten.max_pool2d.default")
def max_pool2d(x, kernel, stride, padding, dilation, ceil_mode):
    return (pooled(x, kernel, stride, padding, dilation, ceil_mode),)


@rule("self:T kernel_size:[i] stride:[i] padding:[i] dilation:[i] ceil_mode:b",
      "aten.max_pool2d_with_indices.default")
def max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil_mode):
    sizes = pooled(x, kernel, stride, padding, dilation, ceil_mode)
    return sizes, sizes


# Images


@rule("self:T upscale_factor:i", "aten.pixel_shuffle.default")
def pixel_shuffle(x, factor):
    if len(x) < 3:
        fail("self", f"expected at least rank 3, got sizes {list(x)}")
    at_least(factor, 1, "upscale_factor")
    *batch, channels, height, width = x
    if channels % (factor * factor):
        fail("upscale_factor", f"the square of {factor} does not divide {channels} channels")
    return ((*batch, channels // (factor * factor), height * factor, width * factor),)


def resampled(x, size, scales):
    """Sizes of a resampled image; one of `size` and `scales` is given."""
    need_rank(x, 4, "input")
    if (size is None) == (scales is None):
        fail("output_size", "expected either it or scale_factors")
    name = "scale_factors" if size is None else "output_size"
    given = scales if size is None else size
    if len(given) != 2:
        fail(name, f"expected 2 numbers, got {list(given)}")
    if size is None:
        if not all(math.isfinite(scale) for scale in scales):
            fail(name, f"expected finite numbers, got {list(scales)}")
        size = tuple(int(n * scale) for n, scale in zip(x[2:], scales, strict=True))
    if min(size) < 1 or 0 in x[1:]:
        fail(name, f"resamples sizes {list(x)} to {list(size)}")
    return ((*x[:2], *size),)


@rule("input:T output_size:[i]? scale_factors:[f]?", "aten.upsample_nearest2d.vec")
def upsample_nearest2d(x, size, scales):
    return resampled(x, size, scales)


@rule("input:T output_size:[i]? align_corners:b scale_factors:[f]?", "aten.upsample_bilinear2d.vec")
def upsample_bilinear2d(x, size, _align, scales):
    return resampled(x, size, scales)
