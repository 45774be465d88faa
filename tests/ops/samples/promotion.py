"""Operators on tensors of several dtypes, which torch promotes; exporters leave them mixed."""

import numpy as np
from harness import Sample, booleans, integers, normal

X, Y = normal(2, 3, 6), integers(2, 3, 6, seed=1)
TRUE = booleans(2, 3, 6, seed=2)
HALVES = normal(2, 3, 6, seed=3).astype(np.float16)


def sample(op, args, expect, dtype="float32", **options):
    dtypes = " ".join(str(a.dtype) for a in args if isinstance(a, np.ndarray))
    return Sample(op, args, expect, dtype=dtype, name=f"{dtypes} to {dtype}", **options)


def cat(dim, arrays, dtype="float32", **options):
    dtypes = " ".join(str(a.dtype) for a in arrays)
    return Sample("aten.cat.default", [arrays, dim], lambda a, d: np.concatenate(a, d),
                  dtype=dtype, rtol=0, name=f"{dtypes} along {dim}", **options)


def binary(op, function, *extra, dtype="float32", pairs=((Y, X), (X, Y), (TRUE, X), (HALVES, X))):
    return [sample(op, [a, b, *extra], lambda a, b, *_: function(a, b), dtype, rtol=2e-6)
            for a, b in pairs]


def replaced(x, part, dim, start, end, step):
    result = x.copy()
    result[:, start:end:step] = part
    return result


SAMPLES = [
    *(cat(dim, [a, b]) for dim in (0, 1, 2) for a, b in ((Y, X), (X, Y), (HALVES, X))),
    cat(2, [normal(2, 3, 8), integers(2, 3, 4), normal(2, 3, 4).astype(np.float16)]),
    cat(2, [integers(2, 3, 5), normal(2, 3, 3), HALVES, integers(2, 3, 2), normal(2, 3, 1)]),
    cat(1, [TRUE, Y], "int32"),
    cat(0, [TRUE, X]),
    cat(0, [integers(5), normal(3)]),
    cat(1, [integers(2, 3, 4), normal(2, 5, 4)], constants=(0,)),
    *binary("aten.add.Tensor", np.add, 1),
    *binary("aten.sub.Tensor", np.subtract, 1, pairs=((Y, X), (X, Y))),
    *binary("aten.mul.Tensor", np.multiply),
    *binary("aten.mul.Tensor", np.multiply, dtype="int32", pairs=((TRUE, Y),)),
    *binary("aten.div.Tensor", lambda a, b: a / b, pairs=((X, Y * 2 + 1), (Y, Y * 2 + 1))),
    *binary("aten.minimum.default", np.minimum),
    *binary("aten.maximum.default", np.maximum),
    *binary("aten.gt.Tensor", np.greater, dtype="bool", pairs=((Y, X), (X, Y), (TRUE, Y))),
    *binary("aten.eq.Tensor", np.equal, dtype="bool", pairs=((Y, X.round()), (TRUE, Y))),
    *binary("aten.logical_and.default", np.logical_and, dtype="bool", pairs=((TRUE, X), (Y, X))),
    *binary("aten.bitwise_and.Tensor", np.bitwise_and, dtype="int32", pairs=((TRUE, Y),)),
    # Only the 0-d tensor is wider.
    sample("aten.mul.Tensor", [HALVES, normal()], np.multiply, "float16", rtol=2e-3),
    sample("aten.where.self", [TRUE, Y, X], np.where, rtol=0),
    sample("aten.where.self", [TRUE, X, HALVES], np.where, rtol=0),
    sample("aten.div.Tensor_mode", [Y, Y * 2 + 1, None], lambda a, b, _: a / b),
    sample("aten.exp.default", [Y], np.exp),
    sample("aten.sigmoid.default", [TRUE], lambda x: 1 / (1 + np.exp(-x.astype(float)))),
    sample("aten.add.Scalar", [Y, 1.5], np.add, rtol=0),
    sample("aten.mul.Scalar", [TRUE, 3], lambda x, n: x.astype(np.int32) * n, "int32"),
    sample("aten.div.Scalar", [Y, 2], lambda x, n: x / n),
    sample("aten.pow.Tensor_Scalar", [abs(Y), 0.5], np.power),
    sample("aten.clamp.default", [Y, -1.5, 2.5], np.clip, rtol=0),
    sample("aten.slice_scatter.default", [normal(2, 6), integers(2, 3), 1, 0, 6, 2], replaced,
           rtol=0),
    sample("aten._softmax.default", [HALVES, 2, True],
           lambda x, *_: np.exp(x) / np.exp(x).sum(2, keepdims=True), rtol=2e-6),
    sample("aten.mean.dim", [HALVES, [2], False, None], lambda x, *_: x.mean(2), rtol=2e-6),
    sample("aten.mean.dim", [Y, [2], False, None], lambda x, *_: x.mean(2), rtol=2e-6),
]
