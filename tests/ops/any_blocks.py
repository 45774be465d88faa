"""Several nodes as exporters write them, with odd sizes and something in their middle now and then:
what passes make one node of, and what looks like it."""

import math
from random import Random

from checked_network import CheckedNetwork

from vkrt.graph.symbols import size_of
from vkrt.work.tensor import Tensor


def attention(net: CheckedNetwork, x: Tensor, chance: Random) -> None:
    """Queries, keys and values of one layer or of three, by heads, and two products."""
    if x.rank < 2:
        return
    rows, width = x.sizes[-2:]
    batch = math.prod(x.sizes[:-2])
    heads, size = chance.choice((1, 2, 3)), chance.choice((1, 3, 4, 5, 8))

    def by_heads(y: Tensor | None, order: list[int]) -> Tensor | None:
        """[.., rows, heads * size] as batches of matrices."""
        if y is None:
            return None
        many = size_of(x, x.rank - 2) if chance.random() < 0.5 else rows
        y = net.add("aten.view_copy.default", y, [batch, many, heads, size])
        y = y and net.add("aten.permute_copy.default", y, order)
        if y is not None and chance.random() < 0.4:
            y = net.add("aten.mul.Scalar", y, chance.choice((0.5, 1.25)))
        if y is not None and chance.random() < 0.4:
            y = net.add("aten.expand_copy.default", y, list(y.sizes), False)
        return y and net.add("aten.view_copy.default", y, [batch * heads, *(
            -1 if chance.random() < 0.5 and n == rows and rows != size else n
            for n in y.sizes[2:])])

    if chance.random() < 0.5:
        layers = [net.add("aten.linear.default", x, net.weight(heads * size, width), None)
                  for _ in range(3)]
    else:
        whole = net.add("aten.linear.default", x, net.weight(3 * heads * size, width), None)
        parts = whole and chance.choice((
            ("aten.split_copy.Tensor", heads * size, -1),
            ("aten.split_with_sizes_copy.default", [heads * size] * 3, whole.rank - 1)))
        if not parts or net.add(parts[0], whole, *parts[1:]) is None:
            return
        layers = list(net.nodes[-1].outs)
    queries, values = (by_heads(layers[place], [0, 2, 1, 3]) for place in (0, 2))
    if chance.random() < 0.5:
        keys = by_heads(layers[1], [0, 2, 3, 1])
    else:
        keys = by_heads(layers[1], [0, 2, 1, 3])
        keys = keys and net.add("aten.permute_copy.default", keys, [0, 2, 1])
    scores = queries and keys and net.add("aten.bmm.default", queries, keys)
    if scores and chance.random() < 0.5:
        scores = net.add("aten.mul.Scalar", scores, 0.5)
    if scores and chance.random() < 0.5:
        masks = net.weight(*chance.choice(((rows, rows), (1, rows, rows), (rows,))))
        scores = net.add("aten.add.Tensor", scores, masks, 1)
    weights = scores and net.add("aten._softmax.default", scores, -1, False)
    mixed = weights and values and net.add("aten.bmm.default", weights, values)
    if mixed:
        mixed = net.add("aten.view_copy.default", mixed, [batch, heads, -1, size])
        mixed = mixed and net.add("aten.permute_copy.default", mixed, [0, 2, 1, 3])
        mixed = mixed and net.add("aten.view_copy.default", mixed, [*x.sizes[:-1], heads * size])
        if mixed and chance.random() < 0.6:
            mixed = net.add("aten.linear.default", mixed, net.weight(width, heads * size), None)
            if mixed:
                net.add("aten.add.Tensor", mixed, x, 1)


def layers(net: CheckedNetwork, x: Tensor, chance: Random) -> None:
    """Norm, two layers with an activation or a gate between, and what the block began with."""
    if not x.rank:
        return
    width, hidden = x.sizes[-1], chance.choice((1, 5, 8, 12, 20, 33))
    y: Tensor | None = x
    if chance.random() < 0.5:
        y = net.add("et_vk.rms_norm.default", x, net.weight(width), 1e-5)
    gate = y and net.add("aten.linear.default", y, net.weight(hidden, width),
                         net.weight(hidden) if chance.random() < 0.5 else None)
    made = gate and _activated(net, gate, chance)
    if made and y and chance.random() < 0.4:
        up = net.add("aten.linear.default", y, net.weight(hidden, width), None)
        made = up and net.add("aten.mul.Tensor", *chance.choice(((made, up), (up, made))))
    made = made and net.add("aten.linear.default", made, net.weight(width, hidden), net.weight(
        width) if chance.random() < 0.5 else None)
    if made and chance.random() < 0.7:
        net.add("aten.add.Tensor", *chance.choice(((made, x), (x, made))), 1)


def _activated(net: CheckedNetwork, x: Tensor, chance: Random) -> Tensor | None:
    """An activation, in pieces or not."""
    kind = chance.randrange(6)
    if kind == 0:
        gate = net.add("aten.sigmoid.default", x)
        return gate and net.add("aten.mul.Tensor", *chance.choice(((x, gate), (gate, x))))
    if kind == 1:
        more = net.add("aten.add.Scalar", x, 3, 1)
        less = more and net.add("aten.clamp.default", more, 0, 6)
        return less and net.add("aten.div.Scalar", less, 6)
    if kind == 2:
        test = net.add("aten.gt.Scalar", x, 0)
        times = net.add("aten.mul.Scalar", x, 0.125)
        return test and times and net.add("aten.where.self", test, x, times)
    if kind == 3:
        return net.add("aten.gelu.default", x, "none")
    return net.add(f"aten.{chance.choice(('relu', 'silu', 'tanh', 'hardswish'))}.default", x)


def images(net: CheckedNetwork, x: Tensor, chance: Random) -> None:
    """A border, pointwise and depthwise convolutions with what follows them, and a second path."""
    if x.rank not in (3, 4):
        return
    count, y = x.rank - 2, x
    for _ in range(chance.randint(1, 3)):
        channels, kernel = y.sizes[1], chance.choice((1, 1, 3, 2, 5))
        group = chance.choice((1, channels))
        columns = channels if group > 1 else chance.choice((1, 3, 4, 5, 8, 11))
        if chance.random() < 0.3:
            border = [chance.choice((0, 1, 2)) for _ in range(2 * count)]
            y = net.add("aten.constant_pad_nd.default", y, border, 0.0) or y
        made = net.add("aten.convolution.default", y, net.weight(
            columns, channels // group, *[kernel] * count), chance.choice(
                (None, net.weight(columns))), [chance.choice((1, 1, 2))] * count,
            [kernel // 2] * count, [1] * count, False, [0] * count, group)
        y = made or y
        if made and chance.random() < 0.4:
            net.add("aten._native_batch_norm_legit_no_training.default", y, net.weight(columns),
                    net.weight(columns), net.weight(columns), net.constants.add(
                        net.noise.uniform(0.5, 2, columns).astype("float32")), 0.1, 1e-5)
            y = net.nodes[-1].outs[0]
        if made and chance.random() < 0.6:
            y = _activated(net, y, chance) or y
    if y.sizes == x.sizes and chance.random() < 0.8:
        net.add("aten.add.Tensor", *chance.choice(((x, y), (y, x))), 1)
    elif chance.random() < 0.5:
        factors = net.add("aten.mean.dim", y, list(range(2, y.rank)), True, None)
        factors = factors and net.add("aten.sigmoid.default", factors)
        if factors:
            net.add("aten.mul.Tensor", *chance.choice(((y, factors), (factors, y))))


BLOCKS = attention, layers, layers, images, images
