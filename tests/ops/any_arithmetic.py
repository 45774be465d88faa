"""Nodes that compute, at random, as any_moves.py has those that move elements."""

from random import Random

import numpy as np
from any_moves import Call, dim_of, some_dims
from checked_network import CheckedNetwork

from vkrt.work.tensor import Tensor

UNARY = ("relu", "sigmoid", "tanh", "hardswish", "silu", "abs", "neg", "sin", "cos", "relu",
         "hardsigmoid", "mish", "expm1", "atan", "exp")
COMPARED = ("gt", "ge", "lt", "le", "eq", "ne")


def smaller(net: CheckedNetwork, x: Tensor, chance: Random) -> Tensor:
    """A tensor that can be broadcast to another one."""
    sizes = [size if chance.random() < 0.6 else 1 for size in x.sizes]
    return net.like(*sizes[chance.choice((0, 0, chance.randint(0, x.rank))):])


def unary(_net: CheckedNetwork, _x: Tensor, chance: Random) -> Call:
    kind = chance.randrange(8)
    if kind == 0:
        return "aten.clamp.default", chance.choice((None, -0.5)), chance.choice((0.7, 6.0))
    if kind == 1:
        return "aten.leaky_relu.default", 0.125
    if kind == 2:
        return "aten.gelu.default", chance.choice(("none", "tanh"))
    if kind == 3:
        return "aten.hardtanh.default", -1.0, 1.0
    if kind == 4:
        return "aten.elu.default", 1.0, 1.0, 1.0
    return (f"aten.{chance.choice(UNARY)}.default",)


def scalar(_net: CheckedNetwork, _x: Tensor, chance: Random) -> Call:
    name = chance.choice(("add", "sub", "rsub", "mul", "div", "pow"))
    if name == "pow":
        return "aten.pow.Tensor_Scalar", chance.choice((2, 2.0, 3))
    number = chance.choice((0.5, 2, -1.5, 3))
    rest = () if name in ("mul", "div") else (chance.choice((1, 0.5)),)
    return f"aten.{name}.Scalar", number, *rest


def binary(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """With another tensor of the same sizes, or of other ones that broadcast."""
    name = chance.choice(("add", "sub", "mul", "add", "mul", "minimum", "maximum", "hypot",
                          "_prelu_kernel"))
    others = [y for y in net.of_dtype["float32"] if all(
        a == b or 1 in (a, b) for a, b in zip(x.sizes[::-1], y.sizes[::-1]))]
    y = chance.choice(others) if others and chance.random() < 0.6 else smaller(net, x, chance)
    if name in ("add", "sub"):
        return f"aten.{name}.Tensor", y, chance.choice((1, 1, 0.5))
    return f"aten.{name}.{'Tensor' if name == 'mul' else 'default'}", y


def compared(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """With a number that no element is near; or what was compared before."""
    mask = net.one("bool")
    if mask is not None and chance.random() < 0.7:
        kind = chance.randrange(4)
        if kind == 0:
            net.add("aten.logical_not.default", mask)
        elif kind == 1:
            net.add(f"aten.logical_{chance.choice(('and', 'or', 'xor'))}.default", mask, mask)
        elif kind == 2 and mask.rank:
            net.add(f"aten.{chance.choice(('any', 'all'))}.dim", mask, dim_of(mask, chance),
                    chance.random() < 0.5)
        if chance.random() < 0.5:
            return "aten.masked_fill.Scalar", net.one("bool"), 0.5
        net.add("aten.where.self", net.one("bool"), x, smaller(net, x, chance))
        return None
    places = np.sort(net.held(x).ravel())
    if places.size < 2:
        return None
    gap = int(np.argmax(np.diff(places[:places.size // 2 + 2])))
    number = float(np.float32((places[gap] + places[gap + 1]) / 2))
    return f"aten.{chance.choice(COMPARED)}.Scalar", number


def reduced(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    dims, keep = some_dims(x, chance), chance.random() < 0.5
    kind = chance.randrange(9)
    if kind < 4:
        name = chance.choice(("mean.dim", "sum.dim_IntList"))
        return f"aten.{name}", chance.choice((dims, dims, dims, None, [])), keep, None
    if kind == 4:
        return f"aten.{chance.choice(('amax', 'amin'))}.default", dims, keep
    if kind == 5:
        return "aten.var.correction", dims, chance.choice((0, 1)), keep
    if kind == 6 and x.rank:
        return f"aten.{chance.choice(('max', 'min'))}.dim", dims[0], keep
    if kind == 7 and x.rank:
        return f"aten.{chance.choice(('argmax', 'argmin'))}.default", dims[0], keep
    return "aten.mean.default", None


def along(_net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    dim = dim_of(x, chance)
    kind = chance.randrange(7)
    if kind < 3:
        return f"aten.{chance.choice(('_softmax', '_softmax', '_log_softmax'))}.default", dim, False
    if kind == 3:
        return "aten.cumsum.default", dim, None
    if kind == 4:
        return "aten.glu.default", dim
    if kind == 5 and x.rank:
        return ("aten.topk.default", chance.randint(1, x.sizes[dim]), dim, chance.random() < 0.5,
                True)
    return "aten.sort.default", dim, chance.random() < 0.5


def normalized(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    def vector(*sizes: int) -> Tensor | None:
        return net.weight(*sizes) if chance.random() < 0.8 else None

    kind = chance.randrange(5)
    if kind <= 1 and x.rank:
        last = x.sizes[-chance.randint(1, x.rank):]
        return "aten.native_layer_norm.default", list(last), vector(*last), vector(*last), 1e-5
    if kind == 2 and x.rank:
        return "et_vk.rms_norm.default", net.weight(x.sizes[-1]), 1e-5
    if x.rank < 2:
        return None
    batch, channels, *rest = x.sizes
    if kind == 3 and rest:
        group = chance.choice([n for n in range(1, channels + 1) if channels % n == 0])
        return ("aten.native_group_norm.default", vector(channels), vector(channels), batch,
                channels, int(np.prod(rest)), group, 1e-5)
    return ("aten._native_batch_norm_legit.no_stats", vector(channels), vector(channels), True, 0.1,
            1e-5)


def product(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """With constants, or with what the network has made."""
    if not x.rank:
        return None
    depth, columns = x.sizes[-1], chance.choice(net.columns)
    if net.repeats is not None and x.rank > 1 and x.sizes[-2] <= max(net.columns):
        columns = net.repeats.choice((columns, x.sizes[-2]))
    bias = net.weight(columns) if chance.random() < 0.6 else None
    kind = chance.randrange(5)
    if kind == 0 and x.rank == 2:
        return "aten.mm.default", net.like(depth, columns)
    if kind == 1 and x.rank == 2:
        added = net.like(*chance.choice(((columns,), (x.sizes[0], columns), (x.sizes[0], 1))))
        net.add("aten.addmm.default", added, x, net.like(depth, columns), 1, 1)
        return None
    if kind == 2 and x.rank == 2:
        net.add("aten.addmv.default", net.like(x.sizes[0]), x, net.like(depth), 1, 1)
        return None
    if x.rank == 3 and chance.random() < 0.5:
        if chance.random() < 0.3:
            turned = net.add("aten.permute_copy.default", x, [0, 2, 1])
            return ("aten.bmm.default", turned) if turned is not None else None
        return "aten.bmm.default", net.like(x.sizes[0], depth, columns)
    weight = net.weight(columns, depth) if chance.random() < 0.8 else net.like(columns, depth)
    return "aten.linear.default", weight, bias


def attended(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """Attention of a tensor's rows to those of another one, or to its own."""
    if x.rank < 2:
        return None
    rows, width = x.sizes[-2:]
    query = net.add("aten.view_copy.default", x, [1, x.numel // (rows * width), rows, width])
    if query is None:
        return None
    others = [query if chance.random() < 0.4 else net.like(*query.sizes) for _ in range(2)]
    mask = net.like(rows, rows) if chance.random() < 0.4 else None
    net.add("et_vk.sdpa.default", query, *others, mask, chance.choice((None, 0.5)))
    return None


def windowed(net: CheckedNetwork, x: Tensor, chance: Random) -> Call:
    """Convolutions, pooling and resampling over one to three dimensions, with or without a
    batch."""
    if x.rank < 3 or x.rank > 5:
        return None
    count = x.rank - 2
    channels, space = x.sizes[1], x.sizes[2:]

    def each(*choices: int) -> list[int]:
        return [chance.choice(choices) for _ in range(count)]

    kind = chance.randrange(7)
    kernel = each(1, 2, 3)
    if kind <= 2 and count < 3:
        group = chance.choice([n for n in range(1, channels + 1) if channels % n == 0])
        columns = -(-chance.choice(net.columns) // group) * group
        transposes = chance.random() < 0.25
        weight = net.weight(channels, columns // group, *kernel) if transposes else net.weight(
            columns, channels // group, *kernel)
        bias = net.weight(columns) if chance.random() < 0.7 else None
        stride = each(1, 1, 2)
        return ("aten.convolution.default", weight, bias, stride, each(0, 1, 2), each(1, 1, 2),
                transposes, [0] * count, group)
    if kind == 3:
        name = chance.choice(("max_pool{}d", "max_pool{}d_with_indices")).format(count)
        # A window of a dilated kernel may be without elements where there is one more.
        dilation, ceil = chance.choice(((each(1, 1, 2), False), ([1] * count, True)))
        return (f"aten.{name}.default", kernel, each(1, 2), [(k - 1) // 2 * chance.choice((0, 1))
                for k in kernel], dilation, ceil)
    if kind == 4:
        padding = [k // 2 * chance.choice((0, 1)) for k in kernel]
        rest = (None,) if count > 1 else ()
        return (f"aten.avg_pool{count}d.default", kernel, each(1, 2), padding,
                chance.random() < 0.4, chance.random() < 0.5, *rest)
    if kind == 5:
        return (f"aten.adaptive_{chance.choice(('avg', 'max'))}_pool{count}d.default",
                [chance.randint(1, n) for n in space])
    if count == 2 and chance.random() < 0.5:
        return "aten.upsample_nearest2d.vec", None, [2.0, 2.0]
    wanted = [chance.randint(1, n + 5) for n in space]
    name = chance.choice((f"upsample_nearest{count}d", f"_upsample_nearest_exact{count}d",
                          f"upsample_{('', 'linear', 'bilinear', 'trilinear')[count]}{count}d"))
    aligns = (chance.random() < 0.5,) if "linear" in name else ()
    return f"aten.{name}.default", wanted, *aligns, *[None] * count


ARITHMETIC = (unary, unary, unary, scalar, binary, binary, binary, compared, reduced, reduced,
              along, normalized, product, product, product, windowed, windowed)
