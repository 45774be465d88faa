"""Random small networks, the same for the same seed, for tests of nodes in parts."""

import random

from networks import Network, squeeze

from vkrt.work.tensor import Tensor


def activate(net: Network, chance: random.Random) -> None:
    net.node(f"aten.{chance.choice(('relu', 'hardswish', 'sigmoid'))}.default", net.last)


def filter_channels(net: Network, chance: random.Random) -> None:
    """A depthwise convolution."""
    net.convolution(0, chance.choice((3, 5)), chance.choice((1, 1, 2)), chance.choice((1, 1, 2)),
                    depthwise=True)


def project(net: Network, chance: random.Random, first: Tensor) -> None:
    """A pointwise convolution, to which what the block began with may be added."""
    same = net.last.sizes[2:] == first.sizes[2:] and chance.random() < 0.6
    net.convolution(first.sizes[1] if same else chance.choice((4, 7, 12)), kernel=1)
    if same:
        net.node("aten.add.Tensor", net.last, first, 1)


def any_images(seed: int) -> Network:
    """A chain of layers of images, some with a second path; odd sides."""
    chance = random.Random(seed)
    net = Network(1, 3, chance.randrange(30, 60), chance.randrange(20, 40), seed=seed)
    earlier: list[Tensor] = []
    for _ in range(chance.randrange(3, 9)):
        channels = chance.choice((4, 6, 16, 24))
        same = [x for x in earlier if x.sizes == net.last.sizes]
        images = [x for x in earlier if x.sizes[2:] == net.last.sizes[2:]]
        earlier.append(net.last)
        kind = chance.randrange(9)
        if kind < 2:
            net.convolution(channels, chance.choice((1, 3, 5)), chance.choice((1, 1, 2)),
                            chance.choice((1, 1, 2)))
        elif kind == 2:
            net.convolution(0, chance.choice((3, 5)), chance.choice((1, 2)), depthwise=True)
        elif kind == 3:
            activate(net, chance)
        elif kind == 4:
            net.node("aten.max_pool2d_with_indices.default", net.last, [3, 3], [2, 2], [1, 1],
                     [1, 1], chance.random() < 0.5, count=2)
        elif kind == 5 and same:
            net.node("aten.add.Tensor", net.last, chance.choice(same), 1)
        elif kind == 6 and images:
            net.node("aten.cat.default", [net.last, chance.choice(images)], 1)
        elif kind == 7 and net.last.sizes[2] < 60:
            net.node("aten.upsample_nearest2d.vec", net.last, None, [2.0, 2.0])
        elif net.last.sizes[1] % 4 == 0 and net.last.sizes[2] < 60:
            net.node("aten.pixel_shuffle.default", net.last, 2)
        elif net.last.sizes[2] < 60:
            inputs = net.last.sizes[1]
            net.node("aten.convolution.default", net.last, net.weight(inputs, channels, 2, 2), None,
                     [2, 2], [0, 0], [1, 1], True, [0, 0], 1)
    net.more = [x for x in earlier[1:] if x is not net.last and chance.random() < 0.2]
    return net


def any_chain(seed: int) -> Network:
    """Blocks of any kernels, strides and dilations, with odd sides; some have a border, activations
    on either side, or a second path."""
    chance = random.Random(seed)
    net = Network(chance.choice((1, 1, 2)), 3, chance.randrange(9, 30), chance.randrange(9, 30),
                  seed=seed)
    net.convolution(chance.choice((5, 8, 13)), stride=chance.choice((1, 2)))
    for _ in range(chance.randrange(1, 4)):
        first, channels = net.last, 4 * chance.randrange(2, 14)
        net.convolution(channels, chance.choice((1, 1, 3)))
        if chance.random() < 0.7:
            activate(net, chance)
        for _ in range(chance.choice((0, 1, 1, 2))):
            filter_channels(net, chance)
            if chance.random() < 0.5:
                net.node("aten.relu.default", net.last)
        if chance.random() < 0.3:
            net.node("aten.mul.Tensor", net.last, net.last)
        project(net, chance, first)
        if chance.random() < 0.5:
            net.node("aten.relu.default", net.last)
    return net


def any_borders(seed: int) -> Network:
    """Layers of images whose borders are wider than their kernels, in the convolutions and before
    them, with many channels in the middle."""
    chance = random.Random(seed)
    net = Network(chance.choice((1, 1, 2)), 3, chance.randrange(4, 30), chance.randrange(2, 20),
                  seed=seed)
    for _ in range(chance.randrange(2, 6)):
        channels, sides = net.last.sizes[1], net.last.sizes[2:]
        kernel = [chance.randint(1, min(side, 3)) for side in sides]
        group = chance.choice((1, 1, channels))
        columns = channels if group > 1 else chance.choice((4, 7, 24, 40))
        if chance.random() < 0.4:
            net.node("aten.constant_pad_nd.default", net.last,
                     [chance.choice((0, 1, 4)) for _ in range(4)], 0.0)
        net.node("aten.convolution.default", net.last,
                 net.weight(columns, channels // group, *kernel), chance.choice(
                     (None, net.weight(columns))), [chance.choice((1, 1, 2, 3)) for _ in range(2)],
                 [chance.choice((0, k // 2, k, k + 2, 2 * k)) for k in kernel],
                 [chance.choice((1, 1, 2)) if min(sides) > 5 else 1] * 2, False, [0, 0], group)
        if chance.random() < 0.4:
            activate(net, chance)
    net.convolution(chance.choice((2, 5)), kernel=1)
    return net


def any_squeezed(seed: int) -> Network:
    """Blocks with factors for channels, of any kernels, strides and second paths; odd sides."""
    chance = random.Random(seed)
    net = Network(chance.choice((1, 1, 2)), 3, chance.randrange(20, 50), chance.randrange(9, 40),
                  seed=seed)
    net.convolution(chance.choice((5, 8, 16)), stride=chance.choice((1, 2)))
    for _ in range(chance.randrange(1, 4)):
        first = net.last
        if chance.random() < 0.8:
            net.convolution(4 * chance.randrange(4, 14), chance.choice((1, 1, 3)))
        if chance.random() < 0.7:
            activate(net, chance)
        filter_channels(net, chance)
        if chance.random() < 0.7:
            net.node("aten.relu.default", net.last)
        if chance.random() < 0.9:
            squeeze(net, chance.choice((4, 6)), chance.random() < 0.7)
        project(net, chance, first)
    return net


def any_layers(seed: int) -> Network:
    """Layers of transformers of few rows, whose hidden layer may be gate * up; weights of floats or
    of 4 bits."""
    chance = random.Random(seed)
    kind, width = chance.choice(("float", "groups", "channels")), 32 * chance.randrange(1, 4)
    net = Network(1, chance.randrange(1, 70), width, seed=seed)

    def layer(columns: int) -> Tensor:
        return net.scaled_layer(kind, columns, chance.random() < 0.5)

    for _ in range(chance.randrange(1, 4)):
        first, hidden = net.last, 32 * chance.randrange(2, 9)
        gate = net.node(f"aten.{chance.choice(('relu', 'sigmoid'))}.default", layer(hidden))
        if chance.random() < 0.5:
            net.last = first
            net.node("aten.mul.Tensor", gate, layer(hidden))
        net.node("aten.add.Tensor", layer(width), first, 1)
    return net


def any_rows(seed: int) -> Network:
    """Wide layers of any number of rows, which may be in the middle of three dimensions, and what
    else is made of their results: sums and means of rows, which may be vectors, and rows in the
    place of columns. Rows are along texels there."""
    chance = random.Random(seed)
    images = chance.choice(((), (), (1,), (2,)))
    net = Network(*images, chance.randrange(90, 1100), 16, seed=seed)
    for _ in range(chance.randrange(1, 3)):
        net.linear(chance.choice((64, 256, 1022)))
        wide = net.node(f"aten.{chance.choice(('relu', 'sigmoid', 'tanh'))}.default", net.last)
        turned = (*range(wide.rank - 2), wide.rank - 1, wide.rank - 2)
        for _ in range(chance.randrange(3)):
            op, *args = chance.choice((
                ("mean.dim", [-1], False, None), ("mean.dim", [-1], True, None),
                ("amax.default", [-1], False), ("sum.dim_IntList", [-1], False, None),
                ("permute_copy.default", list(turned)), ("_softmax.default", -1, False)))
            made = net.node(f"aten.{op}", wide, *args)
            net.more.append(net.node("aten.sigmoid.default", made)
                            if chance.random() < 0.3 else made)
        net.last = wide
        net.linear(chance.choice((5, 16, 23)))
    return net
