"""Samples of images, lines and volumes that are resampled to other sizes."""

from functools import partial

import numpy as np
from harness import Sample, by, integers, normal


def linear(distance):
    return np.maximum(1 - np.abs(distance), 0)


def cubic(slope, distance):
    """Keys' function of the distance, with this slope at 1."""
    d = np.abs(distance)
    near = (slope + 2) * d**3 - (slope + 3) * d**2 + 1
    return np.where(d < 1, near, np.where(d < 2, slope * (d**3 - 5 * d**2 + 8 * d - 4), 0))


def rounded(offset, size, out, factor, _align):
    """The nearest elements; places are computed in float32, as torch does."""
    step = np.float32(1 / factor if factor else size / out)
    places = np.floor((np.arange(out, dtype=np.float32) + np.float32(offset)) * step)
    return np.eye(size)[np.minimum(places.astype(np.int64), size - 1)]


def step_of(size, out, factor, align):
    if align:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1 / factor if factor else size / out


def between(function, reach, size, out, factor, align):
    """Weights of the `2 * reach` nearest elements, those outside being the ones at the edges."""
    i = np.arange(out)
    step = step_of(size, out, factor, align)
    place = step * i if align else step * (i + 0.5) - 0.5
    if reach == 1:
        place = np.maximum(place, 0)
    first = np.floor(place).astype(np.int64) - reach + 1
    matrix = np.zeros((out, size))
    for tap in range(2 * reach):
        np.add.at(matrix, (i, np.clip(first + tap, 0, size - 1)), function(first + tap - place))
    return matrix


def antialiased(function, size, out, factor, align):
    """Weights over all that an element of the result covers, in their sum; none lie outside."""
    if size == out:
        return np.eye(size)
    step = step_of(size, out, factor, align)
    place = step * (np.arange(out) + 0.5) - 0.5
    matrix = function((np.arange(size) - place[:, None]) / max(step, 1.0))
    return matrix / matrix.sum(1, keepdims=True)


# What each operator makes of one side
SIDES = {
    **{f"upsample_nearest{n}d": partial(rounded, 0.0) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": partial(rounded, 0.5) for n in (1, 2, 3)},
    **dict.fromkeys(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"),
                    partial(between, linear, 1)),
    "upsample_bicubic2d": partial(between, partial(cubic, -0.75), 2),
    "_upsample_bilinear2d_aa": partial(antialiased, linear),
    "_upsample_bicubic2d_aa": partial(antialiased, partial(cubic, -0.5)),
}


def resample(side, x, sizes, align, factors):
    """x [N, C, ..] with all sides made by `side`; sizes or factors may be None."""
    count = x.ndim - 2
    sizes = sizes or [int(size * factor) for size, factor in zip(x.shape[2:], factors)]
    for axis, (out, factor) in enumerate(zip(sizes, factors or [None] * count), 2):
        matrix = side(x.shape[axis], out, factor, align)
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x


def sample(name, sizes, wanted, factors, align=None, overload="default", bytes_=False, **options):
    """One call; `align` is None for operators that do not have it, `bytes_`: of bytes."""
    x = integers(*sizes, low=0, high=256).astype(np.uint8) if bytes_ else normal(*sizes)
    side, aligns = SIDES[name], [] if align is None else [align]
    numbers = [factors] if overload == "vec" else factors or [None] * (len(sizes) - 2)

    def expect(x, out, *_):
        return resample(side, x, out, bool(align), factors)

    label = f"{by(sizes)}-{wanted}-{factors}{'-aligned' if align else ''}"
    return Sample(f"aten.{name}.{overload}", [x, wanted, *aligns, *numbers], expect,
                  name=f"{x.dtype}-{label}".replace(" ", ""), **options)


# sizes, output size or None, factors or None
IMAGES = [
    ((1, 3, 4, 5), None, [2.0, 2.0]), ((2, 6, 4, 5), None, [1.7, 3.0]),
    ((1, 5, 6, 7), None, [1.5, 2.5]), ((1, 4, 10, 9), None, [0.7, 0.3]),
    ((1, 4, 5, 6), [13, 17], None), ((1, 2, 9, 9), [9, 4], None),
    ((1, 5, 6, 7), [1, 1], None), ((2, 3, 1, 1), [3, 4], None),
]
# sizes, output size, factors or None
LINES = [((2, 5, 7), [13], None), ((1, 4, 9), [18], [2.0]), ((1, 6, 10), [3], [0.35])]
SMALL_IMAGES = [((1, 5, 6, 7), [13, 9], None), ((2, 4, 8, 9), [5, 3], [0.7, 0.35]),
                ((1, 3, 1, 5), [4, 1], None)]
VOLUMES = [((1, 5, 3, 4, 5), [5, 4, 9], None), ((2, 4, 5, 4, 3), [3, 2, 6], [0.6, 0.5, 2.0])]
COVERED = [((1, 5, 9, 30), [4, 3], None), ((2, 4, 8, 9), [13, 17], None),
           ((1, 3, 7, 6), [7, 3], [1.0, 0.45]), ((1, 6, 5, 5), [1, 1], None),
           ((1, 4, 4, 5), [4, 5], None)]
ROUNDED = ["upsample_nearest{}d", "_upsample_nearest_exact{}d"]
FEW = {1: LINES, 2: SMALL_IMAGES, 3: VOLUMES}

SAMPLES = [
    *(sample("upsample_nearest2d", *case, overload="vec", bytes_=bytes_)
      for bytes_ in (False, True) for case in IMAGES),
    *(sample("upsample_nearest2d", *case, bytes_=True) for case in SMALL_IMAGES),
    *(sample("upsample_bilinear2d", *case, align, "vec") for case in IMAGES
      for align in (False, True)),
    *(sample(name.format(count), *case) for name in ROUNDED for count, cases in FEW.items()
      for case in cases),
    *(sample(name, *case, number % 2 > 0)
      for name, cases in {"upsample_linear1d": LINES, "upsample_bilinear2d": SMALL_IMAGES,
                          "upsample_trilinear3d": VOLUMES}.items()
      for number, case in enumerate(cases)),
    *(sample("upsample_bicubic2d", *case, align) for case in SMALL_IMAGES + IMAGES[6:]
      for align in (False, True)),
    *(sample(name, *case, number % 2 > 0)
      for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
      for number, case in enumerate(COVERED)),
]
