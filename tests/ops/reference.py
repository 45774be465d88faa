"""Operators in plain numpy, written for being obviously right; computed in float64."""

from __future__ import annotations

import math

import numpy as np


def windows(x: np.ndarray, kernel, stride, dilation, out_sizes):
    """For every tap (ky, kx) the pixels of x [.., H, W] it meets, each [.., OH, OW]."""
    (ky, kx), (sy, sx), (dy, dx), (oh, ow) = kernel, stride, dilation, out_sizes
    for i in range(ky):
        for j in range(kx):
            top, left = i * dy, j * dx
            yield i, j, x[..., top:top + (oh - 1) * sy + 1:sy, left:left + (ow - 1) * sx + 1:sx]


def padded(x: np.ndarray, padding, more=(0, 0), value: float = 0.0) -> np.ndarray:
    """x [.., H, W] with `padding` on every side and `more` at the end."""
    widths = [(0, 0)] * (x.ndim - 2) + [(p, p + m) for p, m in zip(padding, more)]
    return np.pad(x.astype(np.float64), widths, constant_values=value)


def conv_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Pixels of a convolution's result along one dimension."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def conv2d(x, weight, bias, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    """x [N, C, H, W] by weight [O, C / groups, kh, kw]."""
    channels, inputs, *kernel = weight.shape
    sizes = tuple(conv_size(*numbers) for numbers in
                  zip(x.shape[2:], kernel, stride, padding, dilation))
    out = np.zeros((x.shape[0], channels, *sizes))
    x = padded(x, padding)
    each = channels // groups
    for group in range(groups):
        part = slice(group * each, (group + 1) * each)
        source = x[:, group * inputs:(group + 1) * inputs]
        for ky, kx, pixels in windows(source, kernel, stride, dilation, sizes):
            taps = weight[part, :, ky, kx].astype(np.float64)
            out[:, part] += np.einsum("oi,nihw->nohw", taps, pixels)
    return out if bias is None else out + bias[:, None, None]


def conv1d(x, weight, bias, stride=1, padding=0, dilation=1, groups=1):
    """x [N, C, L] by weight [O, C / groups, k]."""
    return conv2d(x[:, :, None], weight[:, :, None], bias, (1, stride), (0, padding),
                  (1, dilation), groups)[:, :, 0]


def conv_transpose2d(x, weight, bias, stride=(1, 1), padding=(0, 0), dilation=(1, 1),
                     output_padding=(0, 0), groups=1):
    """x [N, C, H, W] by weight [C, O / groups, kh, kw]: every pixel is spread over the result."""
    inputs, each, *kernel = weight.shape
    full = [(size - 1) * step + dil * (k - 1) + 1
            for size, step, dil, k in zip(x.shape[2:], stride, dilation, kernel)]
    # What is padded is cut off again; what is added at the end may reach beyond the full size.
    whole = np.zeros((x.shape[0], each * groups, *(a + b for a, b in zip(full, output_padding))))
    for group in range(groups):
        source = slice(group * inputs // groups, (group + 1) * inputs // groups)
        part = slice(group * each, (group + 1) * each)
        for ky in range(kernel[0]):
            for kx in range(kernel[1]):
                top, left = ky * dilation[0], kx * dilation[1]
                taps = weight[source, :, ky, kx].astype(np.float64)
                whole[:, part, top:top + (x.shape[2] - 1) * stride[0] + 1:stride[0],
                      left:left + (x.shape[3] - 1) * stride[1] + 1:stride[1]] += np.einsum(
                          "io,nihw->nohw", taps, x[:, source])
    out = whole[:, :, padding[0]:whole.shape[2] - padding[0],
                padding[1]:whole.shape[3] - padding[1]]
    return out if bias is None else out + bias[:, None, None]


def conv_transpose1d(x, weight, bias, stride=1, padding=0, dilation=1, output_padding=0, groups=1):
    """x [N, C, L] by weight [C, O / groups, k]."""
    return conv_transpose2d(x[:, :, None], weight[:, :, None], bias, (1, stride), (0, padding),
                            (1, dilation), (0, output_padding), groups)[:, :, 0]


def pool_size(size: int, kernel: int, stride: int, padding: int, dilation: int = 1,
              ceil: bool = False) -> int:
    """Pixels of a pooling's result: a last window has to start inside the image or its left pad."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-span // stride) if ceil else span // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def _pool_sizes(x, kernel, stride, padding, dilation, ceil):
    return tuple(pool_size(*numbers, ceil)
                 for numbers in zip(x.shape[-2:], kernel, stride, padding, dilation))


def max_pool2d(x, kernel, stride, padding=(0, 0), dilation=(1, 1), ceil=False):
    """The largest elements and their places y * W + x."""
    height, width = x.shape[-2:]
    sizes = _pool_sizes(x, kernel, stride, padding, dilation, ceil)
    best = np.full((*x.shape[:-2], *sizes), -math.inf)
    index = np.zeros(best.shape, np.int64)
    for where in np.ndindex(best.shape):
        *outer, oy, ox = where
        for ky in range(kernel[0]):
            for kx in range(kernel[1]):
                y = oy * stride[0] - padding[0] + ky * dilation[0]
                column = ox * stride[1] - padding[1] + kx * dilation[1]
                if 0 <= y < height and 0 <= column < width:
                    value = x[(*outer, y, column)]
                    if value > best[where] or value != value:
                        best[where], index[where] = value, y * width + column
    return best, index


def avg_pool2d(x, kernel, stride, padding=(0, 0), ceil=False, include_pad=True, divisor=None):
    """Means of windows; a window may reach beyond the padding with `ceil`, which never counts."""
    height, width = x.shape[-2:]
    sizes = _pool_sizes(x, kernel, stride, padding, (1, 1), ceil)
    out = np.zeros((*x.shape[:-2], *sizes))
    for oy in range(sizes[0]):
        for ox in range(sizes[1]):
            top, left = oy * stride[0] - padding[0], ox * stride[1] - padding[1]
            bottom = min(top + kernel[0], height + padding[0])
            right = min(left + kernel[1], width + padding[1])
            area = (bottom - top) * (right - left)
            top, bottom = max(top, 0), min(bottom, height)
            left, right = max(left, 0), min(right, width)
            if not include_pad:
                area = (bottom - top) * (right - left)
            total = x[..., top:bottom, left:right].astype(np.float64).sum((-2, -1))
            out[..., oy, ox] = total / (divisor or area)
    return out


def pixel_shuffle(x, factor: int):
    """[.., C * r * r, H, W] -> [.., C, H * r, W * r]."""
    *outer, channels, height, width = x.shape
    split = x.reshape(*outer, channels // factor**2, factor, factor, height, width)
    n = len(outer)
    moved = split.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return moved.reshape(*outer, channels // factor**2, height * factor, width * factor)


def grid_sampler_2d(x, grid, mode, padding, align):
    """x [N, C, H, W] at the places of grid [N, OH, OW, 2]."""
    def reflect(place, low, span):
        if span <= 0:
            return 0.0
        away = abs(place - low)
        flips, rest = divmod(away, span)
        return low + (span - rest if flips % 2 else rest)

    def cubic(away):
        if away <= 1:
            return 1.25 * away**3 - 2.25 * away**2 + 1
        return -0.75 * (away**3 - 5 * away**2 + 8 * away - 4)

    def place_of(place, size):
        return (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2

    def inside(p, size):
        if padding == 2:
            p = reflect(p, 0.0, size - 1.0) if align else reflect(p, -0.5, float(size))
        return min(max(p, 0.0), size - 1.0) if padding else p

    batch, channels, height, width = x.shape
    out = np.zeros((batch, channels, *grid.shape[1:3]))
    for n, oy, ox in np.ndindex(batch, *grid.shape[1:3]):
        px, py = (place_of(grid[n, oy, ox, d], size) for d, size in enumerate((width, height)))
        if mode != 2:
            px, py = inside(px, width), inside(py, height)
        left, top = math.floor(px), math.floor(py)
        if mode == 1:
            corners = [(round(px), round(py), 1.0)]
        elif mode == 0:
            corners = [(left + i, top + j, abs(1 - i - px + left) * abs(1 - j - py + top))
                       for i in (0, 1) for j in (0, 1)]
        else:
            corners = [(inside(left + i, width), inside(top + j, height),
                        cubic(abs(left + i - px)) * cubic(abs(top + j - py)))
                       for i in range(-1, 3) for j in range(-1, 3)]
        for column, row, share in corners:
            if 0 <= column < width and 0 <= row < height:
                out[n, :, oy, ox] += share * x[n, :, int(row), int(column)]
    return out
