"""Samples of pixel shuffle and nearest upsampling."""

from __future__ import annotations

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


SAMPLES = [
    *(Sample("aten.pixel_shuffle.default", [normal(*sizes), factor], reference.pixel_shuffle,
             name=f"{'x'.join(map(str, sizes))}-{factor}") for sizes, factor in SHUFFLES),
    *(Sample("aten.upsample_nearest2d.vec", [normal(*sizes), wanted, factors], upsample_nearest2d,
             name=f"{'x'.join(map(str, sizes))}-{wanted or factors}".replace(" ", ""))
      for sizes, wanted, factors in NEAREST),
]
