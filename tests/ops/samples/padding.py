"""Samples of borders of a tensor's own elements."""

import numpy as np
from harness import Sample, of_each_dtype

MODES = {"reflection": "reflect", "replication": "edge"}


def mirrored(x, pads, mode):
    """numpy's padding; a negative one cuts off."""
    pairs = [(0, 0)] * (x.ndim - len(pads) // 2) + list(zip(pads[::2], pads[1::2]))[::-1]
    x = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], mode)
    return x[tuple(slice(-min(a, 0), min(b, 0) or None) for a, b in pairs)]


# sizes, pads from the last dimension on
PADS = {
    1: [((2, 6, 7), [3, 1]), ((5, 9), [0, 4])],
    2: [((1, 6, 5, 7), [2, 3, 1, 4]), ((3, 6, 8), [4, 4, 0, 1]), ((2, 4, 5, 7), [-1, 2, 3, -2])],
    3: [((1, 5, 4, 6, 7), [2, 3, 1, 4, 1, 2]), ((3, 4, 5, 8), [0, 1, 2, 0, 3, 3])],
}


def _pads():
    for count, rows in PADS.items():
        for sizes, pads in rows:
            for name, mode in MODES.items():
                for array in of_each_dtype(*sizes).values():
                    yield Sample(f"aten.{name}_pad{count}d.default", [array, pads],
                                 lambda x, p, m=mode: mirrored(x, p, m), rtol=0,
                                 name=f"{sizes} {pads} {array.dtype}")


ROLLS = [
    ((5, 7), [1], [1]), ((5, 7), [-2], [0]), ((5, 7), [3], []), ((2, 6, 5, 8), [1, -2], [2, 3]),
    ((2, 6, 5, 7), [9, 4, 0], [-1, 1, 0]), ((9,), [4], [0]), ((3, 2, 3, 2, 2, 3), [1] * 6,
                                                             [0, 1, 2, 3, 4, 5]),
    ((0, 3), [1], [0]), ((), [3], []),
]

SAMPLES = [
    *_pads(),
    *(Sample("aten.roll.default", [array, shifts, dims],
             lambda x, s, d: np.roll(x, tuple(s), tuple(d)) if d else np.roll(x, s[0]), rtol=0,
             name=f"{sizes} {shifts} {dims} {array.dtype}")
      for sizes, shifts, dims in ROLLS for array in of_each_dtype(*sizes).values()),
]
