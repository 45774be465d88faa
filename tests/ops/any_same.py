"""Random networks of products and attention between tensors of the same sizes, the same for the
same seed: any of their operands may be the same tensor, in two places or in all of them."""

import math
from random import Random

from any_arithmetic import unary
from checked_network import CheckedNetwork

from vkrt.work.tensor import Tensor

# Of attention, of batches of matrices, and of matrices
SIZES = ((1, 1, 64, 64), (1, 2, 96, 24), (1, 1, 256, 16), (2, 3, 33, 8), (1, 64, 64), (3, 40, 40),
         (2, 96, 96), (128, 128), (65, 65))


def any_same(seed: int) -> CheckedNetwork:
    """Nodes of one element each between nodes that need all rows of some operands."""
    chance = Random(seed)
    sizes = chance.choice(SIZES)
    net = CheckedNetwork(*sizes, seed=seed, columns=(sizes[-1],), most=2 * math.prod(sizes))
    for _ in range(chance.randrange(4, 14)):
        kind = chance.randrange(6)
        if kind < 2:
            op, *args = unary(net, net.last, chance)
            net.add(op, net.last, *args)
        elif kind == 2:
            op = chance.choice(("mul.Tensor", "minimum.default", "hypot.default"))
            net.add(f"aten.{op}", _operand(net), _operand(net))
        elif kind == 3:
            test = net.add("aten.gt.Scalar", net.last, 0.25)
            if test is not None:
                net.add("aten.where.self", test, _operand(net), _operand(net))
        else:
            _product(net, chance)
    net.add("aten.sigmoid.default", net.last)
    return net


def _operand(net: CheckedNetwork) -> Tensor:
    """One of the last tensors of the network's sizes: most often the same one as before."""
    found = [x for x in net.of_dtype["float32"] if x.sizes == net.x.sizes]
    return found[-1] if net.chance.random() < 0.5 else net.chance.choice(found[-3:])


def _product(net: CheckedNetwork, chance: Random) -> None:
    one, other, third = (_operand(net) for _ in range(3))
    if net.x.rank == 4:
        mask = None
        if chance.random() < 0.4:
            rows = net.x.sizes[2]
            fits = net.x.sizes[2] == net.x.sizes[3]
            mask = _operand(net) if fits and chance.random() < 0.5 else net.weight(rows, rows)
        net.add("et_vk.sdpa.default", one, other, third, mask, chance.choice((None, 0.25)))
        return
    depth = net.x.sizes[-1]
    # Factors that have the length of their sums keep numbers near 1.
    one = net.add("aten.mul.Scalar", one, 1 / depth) or one
    if chance.random() < 0.3:
        other = one
    if net.x.rank == 3:
        net.add("aten.bmm.default", one, other)
    elif chance.random() < 0.4:
        net.add("aten.addmm.default", chance.choice((one, third)), one, other, 1, 1)
    elif chance.random() < 0.5:
        net.add("aten.linear.default", one, other, None)
    else:
        net.add("aten.mm.default", one, other)
