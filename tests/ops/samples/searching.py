"""Samples of bucketize and searchsorted: equal elements, rows of their own, NaN, numbers."""

import math

import numpy as np
from harness import Sample, integers, normal, small

INF, NAN = math.inf, math.nan
EDGES = np.array([-INF, -1, -0.5, -0.0, 0, 0.5, 2.5, 3, INF, NAN], np.float32)
BOUNDS = np.array([-1, 0, 0.5, 0.5, 2.5], np.float32)


def bucketize(x, boundaries, _out_int32=False, right=False):
    return np.searchsorted(boundaries, x, "right" if right else "left")


def searchsorted(rows, x, _out_int32=False, right=False, side=None, sorter=None):
    rows = rows if sorter is None else np.take_along_axis(rows, sorter, -1)
    right = right or side == "right"
    if rows.ndim == 1:
        return bucketize(x, rows, right=right)
    lines = zip(rows.reshape(-1, rows.shape[-1]), x.reshape(-1, x.shape[-1]), strict=True)
    return np.stack([bucketize(line, row, right=right) for row, line in lines]).reshape(x.shape)


def ordered(array):
    return np.sort(array, -1)


ROWS = normal(2, 3, 9)

SAMPLES = [
    *(Sample("aten.bucketize.Tensor", [x, bounds, False, right], bucketize, dtype="int32",
             name=f"{x.shape} {x.dtype} {right}")
      for right in (False, True)
      for x, bounds in ((EDGES, BOUNDS), (normal(2, 3, 5), ordered(normal(30))),
                        (normal(2, 3, 5, 4), BOUNDS), (normal(), BOUNDS),
                        (integers(5, 7), ordered(integers(6))),
                        *((small(5, 7, dtype=dtype), ordered(small(6, dtype=dtype)))
                          for dtype in (np.uint8, np.int8)))),
    Sample("aten.bucketize.Tensor", [normal(3, 5), normal(0), True, False], bucketize,
           dtype="int32", name="no boundaries"),
    Sample("aten.bucketize.Tensor", [normal(3, 5), ordered(normal(17)), True, False], bucketize,
           constants=(1,), dtype="int32", name="constant"),
    *(Sample("aten.bucketize.Scalar", [number, bounds, False, right], bucketize, dtype="int32",
             name=f"{number} {bounds.dtype} {right}")
      for number in (0.5, 2) for bounds in (BOUNDS, ordered(integers(6))) for right in (False, True)
      ),
    *(Sample("aten.searchsorted.Tensor", [ordered(rows), x, False, right, None, None],
             searchsorted, dtype="int32", name=f"{rows.shape} {x.shape} {rows.dtype} {right}")
      for right in (False, True)
      for rows, x in ((normal(8), normal(3, 4)), (normal(3, 8), normal(3, 5)),
                      (ROWS, normal(2, 3, 4)), (integers(4, 9), integers(4, 5, seed=1)))),
    Sample("aten.searchsorted.Tensor", [ordered(ROWS), ROWS, False, False, "right", None],
           searchsorted, dtype="int32", name="right side"),
    Sample("aten.searchsorted.Tensor",
           [ROWS, normal(2, 3, 4), False, False, "left", np.argsort(ROWS, -1).astype(np.int32)],
           searchsorted, dtype="int32", name="sorter", half=False),
    *(Sample("aten.searchsorted.Scalar", [rows, number, False, False, "right", None], searchsorted,
             dtype="int32", name=f"{rows.dtype} {number}")
      for rows, number in ((ordered(normal(8)), 0.25), (ordered(integers(9)), 2))),
]
