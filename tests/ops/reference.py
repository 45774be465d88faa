"""Operators in plain numpy, written for being obviously right; computed in float64."""

import math

import numpy as np


def taps(kernel, stride, dilation, out_sizes):
    """For every tap of a kernel its place there, and the pixels that it meets, as slices."""
    for tap in np.ndindex(*kernel):
        yield tap, tuple(slice(k * dil, k * dil + (size - 1) * step + 1, step)
                         for k, step, dil, size in zip(tap, stride, dilation, out_sizes))


def groups_of(count, *channels):
    """For every group the slices of its channels, of so many in all."""
    for group in range(count):
        yield [slice(group * n // count, (group + 1) * n // count) for n in channels]


def biased(x, bias):
    return x if bias is None else x + bias.reshape(-1, *[1] * (x.ndim - 2))


def conv(x, weight, bias, stride, padding, dilation, groups=1):
    """x [N, C, ..] by weight [O, C / groups, ..]."""
    channels, _, *kernel = weight.shape
    sizes = [(size + 2 * pad - dil * (k - 1) - 1) // step + 1
             for size, k, step, pad, dil in zip(x.shape[2:], kernel, stride, padding, dilation)]
    out = np.zeros((x.shape[0], channels, *sizes))
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    for part, source in groups_of(groups, channels, x.shape[1]):
        for tap, pixels in taps(kernel, stride, dilation, sizes):
            weights = weight[(part, ..., *tap)].astype(np.float64)
            out[:, part] += np.einsum("oi,ni...->no...", weights, x[(slice(None), source, *pixels)])
    return biased(out, bias)


def conv_transpose(x, weight, bias, stride, padding, dilation, output_padding, groups=1):
    """x [N, C, ..] by weight [C, O / groups, ..]: every pixel is spread over the result."""
    inputs, each, *kernel = weight.shape
    # What is padded is cut off again; what is added at the end may reach beyond the full size.
    whole = np.zeros((x.shape[0], each * groups, *(
        (size - 1) * step + dil * (k - 1) + 1 + more for size, step, dil, k, more in
        zip(x.shape[2:], stride, dilation, kernel, output_padding))))
    for source, part in groups_of(groups, inputs, each * groups):
        for tap, pixels in taps(kernel, stride, dilation, x.shape[2:]):
            weights = weight[(source, ..., *tap)].astype(np.float64)
            whole[(slice(None), part, *pixels)] += np.einsum("io,ni...->no...", weights,
                                                             x[:, source])
    return biased(whole[(..., *(slice(pad, size - pad)
                                for pad, size in zip(padding, whole.shape[2:])))], bias)


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
