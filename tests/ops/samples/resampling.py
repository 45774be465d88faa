"""Samples of pixel shuffle, upsampling, and sampling by a grid."""

from __future__ import annotations

import numpy as np
import reference
from harness import Sample, normal

SHUFFLES = [((1, 9, 5, 6), 3), ((2, 16, 4, 3), 2), ((1, 48, 3, 5), 4), ((8, 3, 4), 2),
            ((1, 20, 2, 2), 2), ((1, 5, 3, 4), 1)]

# sizes, output size or None, factors or None
NEAREST = [
    ((1, 3, 4, 5), None, [2.0, 2.0]),
    ((2, 6, 4, 5), None, [4.0, 3.0]),
    ((1, 5, 6, 7), None, [1.5, 2.5]),
    ((1, 4, 10, 9), None, [0.7, 0.3]),
    ((1, 4, 5, 6), [13, 17], None),
    ((1, 2, 9, 9), [9, 4], None),
]


def upsample_nearest2d(x, sizes, factors):
    sizes = sizes or [int(size * factor) for size, factor in zip(x.shape[-2:], factors)]
    return reference.upsample_nearest2d(x, sizes, factors)


# sizes, output size or None, factors or None
BILINEAR = [
    ((1, 3, 4, 5), None, [2.0, 2.0]), ((2, 6, 4, 5), None, [1.7, 3.0]),
    ((1, 4, 10, 9), None, [0.7, 0.3]), ((1, 4, 5, 6), [13, 17], None), ((1, 2, 9, 9), [9, 4], None),
    ((1, 5, 6, 7), [1, 1], None), ((2, 3, 1, 1), [3, 4], None),
]


def upsample_bilinear2d(x, sizes, align, factors):
    sizes = sizes or [int(size * factor) for size, factor in zip(x.shape[-2:], factors)]
    return reference.upsample_bilinear2d(x, sizes, align, factors)


def grid_sample(mode, padding, align):
    """A grid that leads outside of the image; half precision would move places to other pixels."""
    grid = np.random.default_rng(5).uniform(-2.4, 2.4, (2, 4, 5, 2)).astype(np.float32)
    grid[0, 0, 0] = -1, 1
    grid[0, 0, 1] = 40, -30
    return Sample("aten.grid_sampler_2d.default", [normal(2, 6, 7, 5), grid, mode, padding, align],
                  reference.grid_sampler_2d, name=f"{mode} {padding} {align}", half=False)


SAMPLES = [
    *(Sample("aten.pixel_shuffle.default", [normal(*sizes), factor], reference.pixel_shuffle,
             name=f"{'x'.join(map(str, sizes))}-{factor}") for sizes, factor in SHUFFLES),
    *(Sample("aten.upsample_nearest2d.vec", [normal(*sizes), wanted, factors], upsample_nearest2d,
             name=f"{'x'.join(map(str, sizes))}-{wanted or factors}".replace(" ", ""))
      for sizes, wanted, factors in NEAREST),
    *(Sample("aten.upsample_bilinear2d.vec", [normal(*sizes), wanted, align, factors],
             upsample_bilinear2d,
             name=f"{'x'.join(map(str, sizes))}-{wanted or factors}-{align}".replace(" ", ""))
      for sizes, wanted, factors in BILINEAR for align in (False, True)),
    *(grid_sample(mode, padding, align)
      for mode in (0, 1) for padding in (0, 1, 2) for align in (False, True)),
    Sample("aten.grid_sampler_2d.default",
           [normal(1, 3, 5, 6), normal(1, 2, 3, 2, scale=0.5), 0, 1, True],
           reference.grid_sampler_2d),
]
