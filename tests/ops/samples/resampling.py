"""Samples of pixel shuffle and sampling by a grid."""

import numpy as np
import reference
from harness import Sample, by, normal

SHUFFLES = [((1, 9, 5, 6), 3), ((2, 16, 4, 3), 2), ((1, 48, 3, 5), 4), ((8, 3, 4), 2),
            ((1, 20, 2, 2), 2), ((1, 5, 3, 4), 1)]


def grid_sample(mode, padding, align):
    """A grid that leads outside of the image; half precision would move places to other pixels."""
    grid = np.random.default_rng(5).uniform(-2.4, 2.4, (2, 4, 5, 2)).astype(np.float32)
    grid[0, 0, 0] = -1, 1
    grid[0, 0, 1] = 40, -30
    return Sample("aten.grid_sampler_2d.default", [normal(2, 6, 7, 5), grid, mode, padding, align],
                  reference.grid_sampler_2d, name=f"{mode} {padding} {align}", half=False)


SAMPLES = [
    *(Sample("aten.pixel_shuffle.default", [normal(*sizes), factor], reference.pixel_shuffle,
             name=f"{by(sizes)}-{factor}") for sizes, factor in SHUFFLES),
    *(grid_sample(mode, padding, align)
      for mode in (0, 1, 2) for padding in (0, 1, 2) for align in (False, True)),
    Sample("aten.grid_sampler_2d.default",
           [normal(1, 3, 5, 6), normal(1, 2, 3, 2, scale=0.5), 0, 1, True],
           reference.grid_sampler_2d),
]
