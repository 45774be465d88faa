"""Layer, group and batch normalization: rows short and long, groups that share a texel or not."""

import numpy as np
from harness import Sample, normal


def layer_norm(x, shape, weight, bias, epsilon):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean, scale = x.mean(axes, keepdims=True), 1 / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    result = (x - mean) * scale
    result = result * (1 if weight is None else weight) + (0 if bias is None else bias)
    return [result, mean, scale]


def layer_sample(sizes, shape, weight=True, bias=True, name="", offset=0.0, moments=False,
                 constants=(2, 3), **options):
    rows = (*sizes[:len(sizes) - len(shape)], *[1] * len(shape))
    return Sample("aten.native_layer_norm.default",
                  [normal(*sizes) + np.float32(offset), list(shape),
                   normal(*shape, seed=1) if weight else None,
                   normal(*shape, seed=2) if bias else None, 1e-5],
                  layer_norm if moments else lambda *args: layer_norm(*args)[:1],
                  outs=[(sizes, "float32"), (rows, "float32"), (rows, "float32")],
                  constants=constants, name=name or f"{sizes}{' moments' if moments else ''}",
                  **options)


def per_channel(vector, x):
    return vector.reshape(1, -1, *[1] * (x.ndim - 2))


def group_norm(x, weight, bias, batch, channels, spatial, groups, epsilon):
    sets = x.reshape(batch, groups, -1)
    mean, scale = sets.mean(2), 1 / np.sqrt(sets.var(2) + epsilon)
    result = ((sets - mean[..., None]) * scale[..., None]).reshape(x.shape)
    result = result * (1 if weight is None else per_channel(weight, x))
    return [result + (0 if bias is None else per_channel(bias, x)), mean, scale]


def group_sample(sizes, groups, weight=True, bias=True, moments=False, offset=0.0, **options):
    batch, channels, *spatial = sizes
    name = f"{sizes} {groups}{'' if weight else ' bare'}{' moments' if moments else ''}"
    return Sample("aten.native_group_norm.default",
                  [normal(*sizes) + np.float32(offset),
                   normal(channels, seed=1) if weight else None,
                   normal(channels, seed=2) if bias else None, batch, channels,
                   int(np.prod(spatial)), groups, 1e-5],
                  group_norm if moments else lambda *args: group_norm(*args)[:1],
                  outs=[(sizes, "float32"), *[((batch, groups), "float32")] * 2],
                  constants=[1, 2], name=name, rtol=2e-6, **options)


def batch_norm(x, weight, bias, mean, variance, _momentum, epsilon):
    result = (x - per_channel(mean, x)) / np.sqrt(per_channel(variance, x) + epsilon)
    result = result * (1 if weight is None else per_channel(weight, x))
    return [result + (0 if bias is None else per_channel(bias, x))]


def batch_sample(sizes, affine=True, constants=(1, 2, 3, 4)):
    channels = sizes[1]
    vectors = [normal(channels, seed=seed) if affine else None for seed in (1, 2)]
    return Sample("aten._native_batch_norm_legit_no_training.default",
                  [normal(*sizes), *vectors, normal(channels, seed=3),
                   np.abs(normal(channels, seed=4)) + np.float32(0.1), 0.1, 1e-5], batch_norm,
                  outs=[(sizes, "float32"), ((0,), "float32"), ((0,), "float32")],
                  constants=constants,
                  name=f"{sizes}{'' if affine else ' bare'}{'' if constants else ' computed'}")


def batch_norm_of_own_moments(x, weight, bias, _training, _momentum, epsilon):
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axes), x.var(axes)
    return [*batch_norm(x, weight, bias, mean, variance, 0.0, epsilon),
            mean, 1 / np.sqrt(variance + epsilon)]


def own_moments_sample(sizes, affine=True, moments=False):
    channels = sizes[1]
    vectors = [normal(channels, seed=seed) if affine else None for seed in (1, 2)]
    name = f"{sizes}{'' if affine else ' bare'}{' moments' if moments else ''}"
    return Sample("aten._native_batch_norm_legit.no_stats",
                  [normal(*sizes), *vectors, True, 0.1, 1e-5],
                  batch_norm_of_own_moments if moments
                  else lambda *args: batch_norm_of_own_moments(*args)[:1],
                  outs=[(sizes, "float32"), *[((channels,), "float32")] * 2],
                  constants=[1, 2], name=name, rtol=2e-6)


SAMPLES = [
    layer_sample((3, 30), (30,)),
    layer_sample((2, 5, 64), (64,)),
    layer_sample((2, 5, 64), (64,), weight=False, name="bias only"),
    layer_sample((2, 5, 13), (13,), weight=False, bias=False, name="neither"),
    layer_sample((2, 3, 4, 9), (3, 4, 9), name="several dimensions"),
    *(layer_sample((2, *shape), shape, constants=(), moments=moments, weight=weight,
                   name=f"computed {shape} {moments} {weight}")
      for shape in ((13,), (3, 4, 9), (5, 8)) for moments in (False, True)
      for weight in (False, True)),
    layer_sample((1, 9000), (9000,)),
    # The mean of numbers near 30 is known to 30 * 2^-24.
    layer_sample((4, 96), (96,), name="far from zero", offset=30.0, rtol=1e-5, half=False),
    layer_sample((4, 10_002), (10_002,), name="far from zero, in parts", offset=30.0, rtol=1e-5,
                 half=False),
    layer_sample((2, 5, 14), (14,), moments=True),
    layer_sample((21,), (21,), moments=True),
    layer_sample((2, 3, 5, 6), (5, 6), moments=True),
    layer_sample((2, 3, 5, 6), (2, 3, 5, 6), moments=True, weight=False, bias=False),
    layer_sample((3, 4100, 3), (4100, 3), moments=True),
    layer_sample((1, 90_001), (90_001,), name="very long", half=False),
    # Groups of whole texels, of parts of texels, of one channel, of all of them.
    group_sample((1, 16, 6, 7), 4),
    group_sample((2, 12, 5, 5), 2, moments=True),
    group_sample((2, 12, 5, 5), 6, moments=True),
    group_sample((1, 15, 4, 3), 5),
    group_sample((2, 10, 3, 4), 1),
    group_sample((1, 7, 3, 5), 7),
    group_sample((2, 6, 8, 8), 3, weight=False, bias=False),
    group_sample((2, 6, 8, 8), 3, bias=False),
    group_sample((2, 8, 9), 2, moments=True),
    group_sample((3, 14), 2, moments=True),
    group_sample((1, 6, 2, 3, 5), 3),
    group_sample((1, 14, 90, 90), 2, half=False),
    group_sample((1, 12, 60, 61), 4, moments=True, offset=3.0, half=False),
    batch_sample((2, 6, 5, 7)),
    batch_sample((1, 9, 4, 4), affine=False),
    batch_sample((2, 5, 9)),
    batch_sample((3, 10)),
    batch_sample((2, 6, 3, 2, 5)),
    batch_sample((2, 8, 6), constants=()),
    # Of one image, a channel is a set as those of groups are; of several, it lies apart.
    own_moments_sample((1, 6, 5, 7), moments=True),
    own_moments_sample((1, 9, 45), affine=False),
    own_moments_sample((1, 5, 1)),
    own_moments_sample((2, 6, 5, 7), moments=True),
    own_moments_sample((3, 5, 9), affine=False),
    own_moments_sample((7, 10), moments=True),
    own_moments_sample((2, 5, 3, 2, 5)),
]
