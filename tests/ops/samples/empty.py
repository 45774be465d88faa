"""Tensors without elements, wherever torch allows them."""

import math

import numpy as np
from harness import Sample, normal


def none(*sizes, dtype=np.float32):
    return np.zeros(sizes, dtype)


def sample(name, args, expect, **options):
    return Sample(name, args, expect, name="empty " + " ".join(
        str(list(a.shape)) for arg in args for a in (arg if isinstance(arg, list) else [arg])
        if isinstance(a, np.ndarray)), **options)


NO_INDEX = none(0, dtype=np.int32)

SAMPLES = [
    sample("aten.relu.default", [none(3, 0)], lambda x: x),
    sample("aten.clone.default", [none(0, 3), None], lambda x, _: x),
    *(sample("aten.add.Tensor", [none(*a), none(*b), 1], lambda a, b, _: a + b, constants=constants)
      for a, b, constants in (((0, 3), (1, 3), []), ((0, 3), (1, 1), [0]), ((3, 0), (1,), [0]))),
    sample("aten.eq.Scalar", [none(0, 3), 1], lambda x, _: x == 1, dtype="bool"),
    sample("aten.where.self", [none(0, 3, dtype=bool), none(0, 3), none(3)],
           lambda c, a, _: a, dtype="float32"),
    sample("aten.full.default", [[0, 3], 1.0, None], lambda s, *_: np.zeros(s), dtype="float32"),
    *(sample("aten.cat.default", [[none(*sizes), array], 1], lambda arrays, _: arrays[-1])
      for sizes, array in (((2, 0), normal(2, 3)), ((2, 0), none(2, 0)), ((0,), normal(2, 3)))),
    *(sample("aten.view_copy.default", [none(0, 3), to], lambda x, s: x.reshape(s))
      for to in ([3, 0], [2, 0, 5], [0])),
    sample("aten.permute_copy.default", [none(0, 3), [1, 0]], lambda x, p: x.transpose(p)),
    *(sample("aten.slice_copy.Tensor", [normal(4, 3), dim, 2, 2, 1],
             lambda x, d, *_: x[2:2] if d == 0 else x[:, 2:2]) for dim in (0, 1)),
    sample("aten.slice_scatter.default", [normal(4, 3), none(0, 3), 0, 2, 2, 1], lambda x, *_: x),
    *(sample("aten.constant_pad_nd.default", [none(*sizes), pads, 2.0],
             lambda x, p, _: np.full((2, 3) if len(p) == 4 else (3, 2), 2.0))
      for sizes, pads in (((0, 3), [0, 0, 1, 1]), ((3, 0), [1, 1]))),
    *(sample("aten.sum.dim_IntList", [none(*sizes), [dim], False, None],
             lambda x, d, *_: x.sum(d[0]))
      for sizes, dim in (((0, 3), 0), ((3, 0), 1), ((3, 0), 0))),
    sample("aten.mean.dim", [none(3, 0), [1], False, None], lambda *_: np.full(3, math.nan)),
    *(sample(f"aten.{name}.dim", [none(3, 0, dtype=bool), 1, False],
             lambda x, d, _, f=function: f(x, d), dtype="bool")
      for name, function in (("any", np.any), ("all", np.all))),
    sample("aten.argmax.default", [none(0, 3), 1, False], lambda *_: np.zeros(0), dtype="int32"),
    *(sample("aten._softmax.default", [none(*sizes), 1, False], lambda x, *_: x)
      for sizes in ((3, 0), (0, 3))),
    # torch gives a tensor without elements back as it is.
    sample("aten._softmax.default", [none(0, 3, dtype=np.int32), 1, False], lambda x, *_: x),
    sample("aten._log_softmax.default", [none(2, 0, dtype=np.int32), 0, False], lambda x, *_: x),
    sample("aten.native_layer_norm.default", [none(0, 3), [3], None, None, 1e-5],
           lambda x, *_: x, outs=[((0, 3), "float32"), ((0, 1), "float32"), ((0, 1), "float32")]),
    sample("aten.expand_copy.default", [none(1, 3), [0, 3], False], lambda x, *_: x[:0]),
    sample("aten.repeat.default", [normal(2, 3), [0, 1]], lambda x, _: x[:0]),
    sample("aten.flip.default", [none(0, 3), [0]], lambda x, _: x),
    sample("aten.select_copy.int", [none(0, 3), 1, 2], lambda x, *_: x[:, 2]),
    sample("aten.split_with_sizes_copy.default", [normal(2, 3), [0, 3], 1],
           lambda x, *_: [x[:, :0], x]),
    sample("aten.index_select.default", [normal(4, 3), 0, NO_INDEX], lambda x, *_: x[:0]),
    sample("aten.index_select.default", [none(4, 0), 0, none(2, dtype=np.int32)],
           lambda x, *_: x[:2]),
    sample("aten.gather.default", [normal(4, 3), 0, none(0, 3, dtype=np.int32), False],
           lambda x, *_: x[:0]),
    sample("aten.embedding.default", [normal(4, 3), NO_INDEX, -1, False, False],
           lambda x, *_: x[:0], constants=[0]),
    sample("aten.index.Tensor", [normal(4, 3), [NO_INDEX, None]], lambda x, _: x[:0]),
    sample("aten.index.Tensor", [normal(4, 3), [NO_INDEX, none(1, dtype=np.int32)]],
           lambda *_: none(0)),
    sample("aten.index.Tensor", [none(0, 4, 5, 6), [None, None, *[np.zeros(sizes, np.int32)
                                                                  for sizes in ((2, 1), (1, 3))]]],
           lambda *_: none(0, 4, 2, 3)),
    sample("aten.index_put.default", [none(4, 3, 0), [np.zeros(2, np.int32)] * 2, none(2, 0),
                                      False], lambda x, *_: x),
    sample("aten.unfold_copy.default", [normal(4, 3), 0, 0, 1], lambda *_: none(5, 3, 0)),
    *(sample("aten.mm.default", [a, b], lambda a, b: a @ b)
      for a, b in ((none(0, 3), normal(3, 4)), (none(2, 0), none(0, 4)))),
    sample("aten.linear.default", [none(0, 3), normal(4, 3), None], lambda x, w, _: x @ w.T,
           constants=[1]),
]
