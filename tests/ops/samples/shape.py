"""Operators that move elements or rename dimensions, and those that make larger tensors."""

import math

import numpy as np
from harness import Sample, booleans, integers, normal

END = (1 << 63) - 1


def view(op, sizes, result, *rest, array=None, **options):
    array = normal(*sizes) if array is None else array
    return Sample(op, [array, *rest], lambda x, *_: x.reshape(result), rtol=0,
                  name=f"{list(sizes)} {list(result)}", **options)


RESHAPES = [
    ((2, 6, 5, 7), (2, 6, 35)), ((2, 6, 5, 7), (12, 35)), ((2, 6, 5, 8), (2, 240)),
    ((2, 8, 3, 4), (2, 2, 4, 3, 4)), ((3, 4), (2, 6)), ((5,), (5, 1)), ((5, 1), (5,)),
    ((1, 6, 1, 1), (1, 6)), ((1, 6), (1, 6, 1, 1)), ((2, 1, 5, 7), (2, 35)), ((), (1, 1)),
    ((1,), ()), ((1, 14, 14, 6), (1, 2, 7, 2, 7, 6)), ((4, 6, 10), (6, 4, 10)),
    ((3, 8), (24,)), ((24,), (3, 8)), ((3, 8), (3, 2, 4)), ((2, 3, 5), (5, 3, 2)),
]


def sliced(x, dim, start, end, step):
    place = [slice(None)] * x.ndim
    place[dim] = slice(start, end, step)
    return x[tuple(place)]


def slice_sample(sizes, dim, start, end, step=1, **options):
    return Sample("aten.slice_copy.Tensor", [normal(*sizes), dim, start, end, step], sliced,
                  rtol=0, name=f"{sizes} {dim} {start} {end} {step}", **options)


def split(x, sizes, dim):
    return np.split(x, np.cumsum(sizes)[:-1], dim)


def cat_sample(dim, *sizes, constants=(), make=normal, name=""):
    arrays = [make(*s, seed=i) for i, s in enumerate(sizes)]
    return Sample("aten.cat.default", [arrays, dim], lambda a, d: np.concatenate(a, d), rtol=0,
                  constants=constants, name=f"{dim} {sizes} {name}")


def padded(x, pads, value):
    pairs = [(0, 0)] * x.ndim
    for place in range(len(pads) // 2):
        pairs[x.ndim - 1 - place] = (pads[2 * place], pads[2 * place + 1])
    outside = [(max(a, 0), max(b, 0)) for a, b in pairs]
    result = np.pad(x, outside, constant_values=value)
    return result[tuple(slice(-min(a, 0), size + min(b, 0) if b < 0 else None)
                        for (a, b), size in zip(pairs, result.shape))]


def pad_sample(sizes, pads, value=0.0, array=None):
    return Sample("aten.constant_pad_nd.default",
                  [normal(*sizes) if array is None else array, pads, value], padded, rtol=0,
                  name=f"{sizes} {pads}")


def scattered(x, part, dim, start, end, step):
    result = x.copy()
    place = [slice(None)] * x.ndim
    place[dim] = slice(start, end, step)
    result[tuple(place)] = part
    return result


def scatter_sample(sizes, dim, start, end, step=1, make=normal, name=""):
    x = make(*sizes)
    part = make(*sliced(x, dim, start, end, step).shape, seed=1)
    return Sample("aten.slice_scatter.default", [x, part, dim, start, end, step], scattered,
                  rtol=0, name=f"{sizes} {dim} {start} {end} {step} {name}")


def strided(x, sizes, strides, offset):
    flat = np.ascontiguousarray(x).ravel()
    return np.lib.stride_tricks.as_strided(flat[offset or 0:], sizes,
                                           [n * flat.itemsize for n in strides])


SAMPLES = [
    scatter_sample((4, 6, 5, 8), 0, 1, 3), scatter_sample((4, 6, 5, 7), 1, None, END, 2),
    scatter_sample((4, 6, 5, 7), -1, 2, -1), scatter_sample((4, 6, 5, 7), 3, 1, END, 3),
    scatter_sample((4, 6, 5, 7), 2, -3, 100), scatter_sample((9,), 0, 2, 5),
    scatter_sample((4, 6), 1, 1, 3, make=integers, name="int32"),
    scatter_sample((4, 6), 0, 1, 3, make=booleans, name="bool"),
    *(Sample("aten.as_strided_copy.default", [normal(*sizes), to, strides, offset], strided,
             rtol=0, name=f"{sizes} {to} {strides} {offset}")
      for sizes, to, strides, offset in (
          ((3, 5), [5, 3], [1, 5], None), ((3, 5), [2, 2, 3], [1, 5, 2], 1), ((9,), [3], [4], 0),
          ((2, 3, 5), [4, 4], [0, 7], 2), ((3, 5), [], [], 7))),
    *(Sample("aten.copy.default", [normal(*sizes), normal(*source, seed=1), False],
             lambda x, s, _: np.broadcast_to(s, x.shape), rtol=0, name=f"{sizes} {source}")
      for sizes, source in (((3, 5), (3, 5)), ((2, 3, 5), (3, 1)), ((2, 3, 5), ()))),
    Sample("aten.copy.default", [normal(3, 5), integers(5), False],
           lambda x, s, _: np.broadcast_to(s, x.shape), name="converts"),
    *(view("aten.view_copy.default", sizes, result, list(result)) for sizes, result in RESHAPES),
    view("aten.view_copy.default", (3, 4), (2, 6), [2, 6], constants=[0]),
    view("aten.view_copy.default", (3, 10), (6, 5), [6, 5], array=integers(3, 10)),
    view("aten.view_copy.default", (3, 10), (6, 5), [6, 5], array=booleans(3, 10)),
    view("aten._unsafe_view.default", (2, 6, 5), (12, 5), [12, 5]),
    view("aten.view.default", (2, 6, 5), (12, 5), [12, 5]),
    view("aten.squeeze_copy.dims", (2, 1, 5, 1), (2, 5), [1, 3]),
    view("aten.squeeze_copy.dim", (2, 1, 5, 7), (2, 5, 7), 1),
    view("aten.unsqueeze_copy.default", (2, 5, 7), (2, 1, 5, 7), 1),
    view("aten.unsqueeze_copy.default", (2, 5), (2, 5, 1), -1),
    *(Sample(f"{op}.default", [normal(2, 5, 7), None], lambda x, _: x, rtol=0)
      for op in ("aten.clone", "dim_order_ops._clone_dim_order", "aten.alias_copy")),
    Sample("et_vk.prepack.default", [normal(3, 5)], lambda x: x, rtol=0, constants=[0]),
    *(Sample(f"aten.{name}.default", [normal(*(5, 2, 3, 7)[:len(p)]), p],
             lambda x, p: x.transpose(p), rtol=0, name=str(p))
      for name in ("permute_copy", "permute")
      for p in ([0, 2, 3, 1], [3, 2, 1, 0], [1, 0], [0, -1, 1], [0], [1, 0, 2, 3])),
    Sample("aten.permute_copy.default", [booleans(3, 5, 2), [2, 0, 1]],
           lambda x, p: x.transpose(p), name="bool"),
    Sample("aten.t_copy.default", [normal(3, 5)], lambda x: x.T, rtol=0),
    Sample("aten.t_copy.default", [normal(3, 5)], lambda x: x.T, rtol=0, constants=[0],
           name="constant"),
    Sample("aten.transpose_copy.int", [normal(3, 5, 2), 1, -1], lambda x, a, b: x.swapaxes(a, b),
           rtol=0),
    *(Sample("aten.expand_copy.default", [normal(*sizes), list(result), False],
             lambda x, s, _: np.broadcast_to(x, s), rtol=0, name=f"{sizes} {result}")
      for sizes, result in (((1, 5), (3, 5)), ((3, 1), (3, 7)), ((5,), (2, 3, 5)), ((), (3, 2)),
                            ((2, 1, 3, 1), (2, 4, 3, 5)), ((3, 5), (3, 5)))),
    *(Sample("aten.repeat.default", [normal(*sizes), repeats], np.tile, rtol=0,
             name=f"{sizes} {repeats}")
      for sizes, repeats in (((3, 5), [2, 3]), ((5,), [2, 3]), ((2, 3, 4, 5), [1, 2, 1, 2]),
                             ((3, 8), [1, 1]), ((3, 5), [2, 1, 1]))),
    *(Sample("aten.flip.default", [normal(2, 3, 5, 7), dims],
             lambda x, d: np.flip(x, tuple(d)) if d else x, rtol=0, name=str(dims))
      for dims in ([0], [1], [-1], [2, 3], [0, 1, 2, 3], [])),
    *(Sample("aten.flip.default", [normal(), [dim]], lambda x, _: x, rtol=0, name=f"0-d {dim}")
      for dim in (0, -1)),
    *(Sample("aten.select_copy.int", [normal(*sizes), dim, index],
             lambda x, d, i: np.take(x, i, d), rtol=0, name=f"{sizes} {dim} {index}")
      for sizes, dim, index in (((4, 6, 5, 8), 0, 2), ((4, 6, 5, 7), 1, 3), ((4, 6, 5, 7), 2, -1),
                                ((4, 6, 5, 7), -1, 6), ((3, 64), 0, 1), ((3, 64), 1, -64),
                                ((7,), 0, 3), ((1, 6, 5), 0, 0), ((3, 1), 1, 0),
                                ((20, 3), 0, 16))),
    slice_sample((4, 6, 5, 8), 0, 1, 3), slice_sample((4, 6, 5, 7), 1, 2, -1),
    slice_sample((4, 6, 5, 7), 3, None, END, 3), slice_sample((4, 6, 5, 7), -1, -3, END),
    slice_sample((4, 6, 5, 7), 2, 0, 100), slice_sample((64, 16), 0, 16, 48),
    slice_sample((64, 3), 0, 16, 48), slice_sample((200,), 0, 64, 128),
    slice_sample((200,), 0, 64, 127), slice_sample((200,), 0, 0, 5),
    slice_sample((1, 1, 200), 2, 64, 128), slice_sample((4, 6, 5, 7), 1, 1, 6, 2),
    slice_sample((5, 6), 0, 0, END), slice_sample((40, 8), 0, 8, 40, 8),
    *(Sample("aten.split_with_sizes_copy.default", [normal(2, 8, 6, 10), parts, dim], split,
             rtol=0, name=f"{parts} {dim}")
      for parts, dim in (([1, 5, 2], 1), ([4, 4], 1), ([2, 4], -2), ([3, 7], 3), ([1, 1], 0))),
    Sample("aten.split_with_sizes_copy.default", [normal(96, 64), [32, 64], 0], split, rtol=0,
           name="rows"),
    *(cat_sample(dim, *sizes) for dim, sizes in (
        (1, ((1, 3, 6, 10), (1, 5, 6, 10))), (1, ((2, 4, 3, 5), (2, 8, 3, 5), (2, 3, 3, 5))),
        (0, ((2, 3), (1, 3))), (-1, ((2, 3), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1))),
        (1, ((3, 5), (3, 9), (3, 1), (3, 2), (3, 3), (3, 6), (3, 1), (3, 11))),
        (2, ((1, 3, 6, 10), (1, 3, 2, 10))), (3, ((1, 3, 6, 10), (1, 3, 6, 3))),
        (0, ((5,), (6,), (7,))), (1, ((2, 4), (2, 8), (2, 4), (2, 12), (2, 4))))),
    cat_sample(1, (1, 3, 6, 10), (1, 5, 6, 10), make=integers, name="int32"),
    cat_sample(1, (1, 3, 6), (1, 5, 6), make=booleans, name="bool"),
    cat_sample(0, (2, 3), (4, 3), constants=[0], name="constants"),
    *(Sample("aten.permute_copy.default", [integers(*sizes).astype(np.int64), order],
             lambda x, p: x.transpose(p), constants=[0], dtype="int32", name=f"int64 {sizes}")
      for sizes, order in (((3, 5), [0, 1]), ((5, 2, 3), [2, 1, 0]), ((8,), [0]))),
    pad_sample((2, 3, 5, 7), [1, 2, 3, 0]), pad_sample((2, 3, 5, 7), [0, 0, 0, 0, 1, 2], 0.5),
    pad_sample((2, 3, 5, 8), [0, 0, 2, 1]), pad_sample((2, 3, 5, 7), [-1, 2, 0, -2], 1.5),
    pad_sample((5,), [3, 1], -2.0), pad_sample((2, 3, 5, 7), [0, 0]),
    pad_sample((2, 3, 5, 7), [1, 1, 1, 1, 1, 1, 1, 1], -math.inf),
    pad_sample((3, 5), [1, 1], 7, integers(3, 5)), pad_sample((3, 5), [1, 1], True, booleans(3, 5)),
    *(Sample("aten.full.default", [[3, 5], value, None], lambda s, v, _: np.full(s, v),
             dtype=dtype, name=dtype)
      for value, dtype in ((0.1, "float32"), (-7, "int32"), (-2**31, "int32"), (True, "bool"),
                           (-3, "int8"), (7, "uint8"), (-math.inf, "float32"), (0.5, "float16"))),
    Sample("aten.full.default", [[3, 8], 0.1, None], lambda s, v, _: np.full(s, v),
           dtype="float32", name="whole"),
    Sample("aten.full_like.default", [normal(2, 3, 5), 2, None],
           lambda x, v, _: np.full_like(x, v)),
    Sample("aten.zeros.default", [[3, 5], None], lambda s, _: np.zeros(s), dtype="float32"),
    Sample("aten.ones.default", [[3, 5], None], lambda s, _: np.ones(s), dtype="float32"),
    Sample("aten.zeros_like.default", [normal(3, 5), None], lambda x, _: np.zeros_like(x)),
    Sample("aten.ones_like.default", [normal(3, 5), None], lambda x, _: np.ones_like(x)),
    Sample("aten.scalar_tensor.default", [2.5, None], lambda v, _: np.asarray(v), dtype="float32"),
    *(Sample("aten.arange.start_step", [start, end, step, None],
             lambda a, b, s, _: np.arange(a, b, s), dtype=dtype,
             name=f"{start} {end} {step} {dtype}")
      for start, end, step, dtype in (
          (0, 7, 1, "float32"), (0, 5, 2, "int32"), (5.0, -1, -1.5, "float32"), (3, 3, 1, "int32"),
          (-2, 30, 3, "int32"), (0.5, 40, 0.25, "float32"), (0, 8, 1, "float16"))),
    Sample("aten.scalar_tensor.default", [3, None], lambda v, _: np.asarray(v), dtype="int32",
           name="int32"),
]
