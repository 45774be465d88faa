"""Random networks of all kinds of nodes, the same for the same seed: tensors of any rank with odd
sizes, what moves their elements between what computes, and a few results of any of them."""

import math
from collections.abc import Callable, Sequence
from random import Random

from any_arithmetic import (
    ARITHMETIC,
    along,
    attended,
    binary,
    normalized,
    product,
    reduced,
    scalar,
    unary,
    windowed,
)
from any_blocks import BLOCKS
from any_moves import MOVES, Call, joined, permuted, shaped, squeezed, transposed, viewed
from checked_network import CheckedNetwork

from vkrt.work.tensor import Tensor

SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 24)
# Most of these can be done for some rows of their result.
BY_ROWS = (unary, unary, scalar, binary, along, normalized, viewed, viewed, permuted, transposed,
           squeezed, joined, product, product, product, windowed, windowed, windowed, reduced,
           shaped)


def any_nodes(seed: int) -> CheckedNetwork:
    """A few nodes or blocks one behind the other, with branches; several results, which may be
    views of one tensor."""
    net = CheckedNetwork(*_sizes(Random(seed), 2000), seed=seed,
                         columns=(1, 3, 4, 5, 8, 13, 20, 33), most=4000)
    chance = net.chance
    wanted = chance.randrange(2, 16)
    moves = chance.choice((0.2, 0.5, 0.8))
    for _ in range(4 * wanted):
        if len(net.nodes) >= wanted:
            break
        x = net.one()
        if chance.random() < 0.1:
            chance.choice(BLOCKS)(net, x, chance)
        else:
            _add(net, x, chance.choice(MOVES if chance.random() < moves
                                       else (*ARITHMETIC, *_more(net))))
    return _ended(net, 0.25)


def any_wide(seed: int) -> CheckedNetwork:
    """A chain of nodes with large tensors in the middle, most of which can be done in parts."""
    net = CheckedNetwork(*_sizes(Random(seed), 1500), seed=seed,
                         columns=(3, 8, 20, 33, 64, 96, 130), most=40000)
    chance = net.chance
    wanted = chance.randrange(3, 12)
    for _ in range(4 * wanted):
        if len(net.nodes) >= wanted:
            break
        x = net.last if chance.random() < 0.9 and net.last.dtype == "float32" else net.one()
        if chance.random() < 0.1:
            chance.choice(BLOCKS)(net, x, chance)
        else:
            _add(net, x, chance.choice((*BY_ROWS, *_more(net))))
    if net.last.dtype == "float32":
        _add(net, net.last, chance.choice((reduced, product, reduced)))
    return _ended(net, 0.04)


def _more(net: CheckedNetwork) -> Sequence[Callable[[CheckedNetwork, Tensor, Random], Call]]:
    """What is added where nodes repeat operands."""
    return () if net.repeats is None else (attended, attended, product, binary)


def _add(net: CheckedNetwork, x, make) -> None:
    call = make(net, x, net.chance)
    if call is not None:
        op, *args = call
        # What joins tensors has it in their list.
        net.add(op, *([] if args and isinstance(args[0], list) and x in args[0] else [x]), *args)


def _ended(net: CheckedNetwork, more: float) -> CheckedNetwork:
    """The network with some other tensors as results, too."""
    if not net.nodes:
        net.add("aten.relu.default", net.x)
    made = [tensor for tensors in net.of_dtype.values() for tensor in tensors
            if tensor is not net.x and tensor is not net.nodes[-1].outs[0]]
    net.more = [tensor for tensor in made if net.chance.random() < more]
    return net


def _sizes(chance: Random, most: int) -> list[int]:
    sizes: list[int] = []
    for _ in range(chance.randint(1, 5)):
        # Some alike: what is permuted then fits what it was made of.
        among = sizes if sizes and chance.random() < 0.3 else SIZES
        sizes.append(chance.choice([n for n in among if n * math.prod(sizes) <= most] or [1]))
    return sizes
