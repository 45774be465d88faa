"""Samples of matrix products: one row and many, odd sizes, constant and computed matrices."""

import numpy as np
from harness import Sample, by, integers, normal

RTOL = 2e-6

# x [.., K], columns: one row, few, many; leading dimensions; K and N that are not whole texels.
LINEAR = [((1, 64), 40), ((1, 37), 21), ((5,), 3), ((2, 33), 18), ((3, 1, 20), 9), ((7, 12), 5),
          ((197, 24), 30), ((2, 3, 5, 18), 22), ((64, 64), 64), ((1, 1030), 7), ((4, 8), 1),
          ((65, 37), 33), ((33, 130), 67), ((17, 3), 17)]
MM = [(5, 7, 9), (1, 12, 10), (40, 33, 26)]
BMM = [(2, 5, 7, 9), (3, 1, 12, 10), (1, 6, 4, 5), (12, 17, 16, 17), (3, 34, 18, 35)]
ADDENDS = [(9,), (1, 9), (6, 9), (6, 1), (1,), (), (1, 1)]
# Of results of 35 x 38
WIDE_ADDENDS = [(38,), (35, 38), (35, 1)]


def linear(x, weight, bias=None):
    return x @ weight.T + (0 if bias is None else bias)


def addmm(bias, a, b, beta, alpha):
    return beta * bias + alpha * (a @ b)


def _linear(sizes, columns, bias=True, constant=True, constants=None) -> Sample:
    args = [normal(*sizes), normal(columns, sizes[-1], seed=1),
            normal(columns, seed=2) if bias else None]
    if constants is None:
        constants = () if not constant else (1, 2) if bias else (1,)
    name = f"{by(sizes)}-{columns}{'' if bias else '-unbiased'}"
    return Sample("aten.linear.default", args, linear, constants=constants, rtol=RTOL,
                  name=name + ("" if constants else "-computed") + (
                      "" if constants in ((), (1,), (1, 2)) else f"-{constants}"))


def _product(op, sizes, constants) -> Sample:
    *batch, m, k, n = sizes
    args = [normal(*batch, m, k), normal(*batch, k, n, seed=1)]
    name = f"{by(sizes)}-{constants}"
    return Sample(op, args, np.matmul, constants=constants, rtol=RTOL, name=name)


def _addmm(sizes, beta, alpha, constants, product=(6, 10, 9)) -> Sample:
    rows, inner, columns = product
    args = [normal(*sizes), normal(rows, inner, seed=1), normal(inner, columns, seed=2), beta,
            alpha]
    name = f"{by(sizes)}-{beta}-{alpha}-{constants}"
    return Sample("aten.addmm.default", args, addmm, constants=constants, rtol=RTOL, name=name)


def _added(op, sizes, shapes, function, beta, alpha, dtype=np.float32) -> Sample:
    """beta * x + alpha * (a product of the others), of floats or of whole numbers."""
    make = normal if dtype == np.float32 else integers
    args = [make(*own, seed=seed).astype(dtype) for seed, own in enumerate((sizes, *shapes))]
    return Sample(f"aten.{op}.default", [*args, beta, alpha],
                  lambda x, a, b, *_: function(x, a, b, beta, alpha), rtol=RTOL,
                  name=f"{by(sizes)}-{shapes[0]}-{beta}-{alpha}-{dtype.__name__}")


def addbmm(x, a, b, beta, alpha):
    return beta * x + alpha * (a @ b).sum(0)


def _whole(op, sizes, dtype, constants=()) -> Sample:
    *batch, m, k, n = sizes
    low = 0 if dtype == np.uint8 else -9
    args = [integers(*own, low=low, seed=seed).astype(dtype)
            for seed, own in enumerate(((*batch, m, k), (*batch, k, n)))]
    return Sample(op, args, np.matmul, constants=constants, rtol=0,
                  name=f"{by(sizes)}-{constants}-{dtype.__name__}")


def _unread_bias() -> Sample:
    """beta is 0: not even NaN in the bias counts."""
    args = [np.full(9, np.nan, np.float32), normal(6, 10, seed=1), normal(10, 9, seed=2), 0, 2.0]
    return Sample("aten.addmm.default", args, lambda bias, a, b, beta, alpha: alpha * (a @ b),
                  constants=(0, 2), rtol=RTOL, name="beta 0", layouts=("plain",))


SAMPLES = [
    *(_linear(sizes, columns) for sizes, columns in LINEAR),
    _linear((6, 10), 7, bias=False),
    _linear((6, 10), 7, constant=False),
    _linear((1, 10), 70, constant=False),
    *(_product("aten.mm.default", sizes, constants) for sizes in MM for constants in ((1,), ())),
    *(_product("aten.bmm.default", sizes, constants) for sizes in BMM for constants in ((1,), ())),
    *(_addmm(sizes, *factors, (0, 2)) for sizes in ADDENDS for factors in ((1, 1), (0.5, 2.0))),
    *(_addmm(sizes, 1, 1, ()) for sizes in ADDENDS),
    _linear((2, 4, 3, 10), 6, constants=(1,)),
    _linear((2, 4, 3, 10), 6, constants=(2,)),
    _linear((5, 10), 7, constants=(0,)),
    _linear((5, 10), 7, bias=False, constants=(0,)),
    _linear((3, 2, 10), 13, constant=False),
    *(_product(op, sizes, constants) for op, sizes in (("aten.mm.default", MM[0]),
                                                       ("aten.bmm.default", BMM[0]))
      for constants in ((0,), (0, 1))),
    _product("aten.bmm.default", (5, 1, 6, 3), ()),
    # Times a column
    *(_product("aten.bmm.default", (3, 13, 10, 1), constants) for constants in ((), (0,), (1,))),
    *(_product("aten.mm.default", (70, 33, 1), constants) for constants in ((), (0,))),
    *(_addmm(sizes, -0.5, 0.25, constants) for sizes in ADDENDS
      for constants in ((0,), (1,), (2,), (0, 1), ())),
    *(_addmm(sizes, -0.5, 0.25, constants, (35, 21, 38)) for sizes in WIDE_ADDENDS
      for constants in ((0, 2), ())),
    _unread_bias(),
    *(_whole("aten.mm.default", sizes, dtype, constants)
      for dtype in (np.int32, np.int8, np.uint8) for sizes in MM for constants in ((), (1,))),
    *(_whole("aten.bmm.default", sizes, np.int32) for sizes in BMM[:3]),
    _whole("aten.mm.default", (3, 0, 5), np.int32),
    *(_added("addmm", sizes, ((6, 10), (10, 9)), addmm, beta, alpha, np.int32)
      for sizes in ADDENDS for beta, alpha in ((1, 1), (2, 3), (0, 2))),
    *(_added("addmv", sizes, ((6, 11), (11,)), addmm, beta, alpha, dtype)
      for sizes in ((6,), (1,), ()) for dtype in (np.float32, np.int32)
      for beta, alpha in ((1, 1), (2, 3), (0, 2))),
    *(_added("addbmm", sizes, ((3, 6, 11), (3, 11, 5)), addbmm, beta, alpha, dtype)
      for sizes in ((6, 5), (5,), (6, 1), ()) for dtype in (np.float32, np.int32)
      for beta, alpha in ((1, 1), (2, 3), (0, 2))),
]
