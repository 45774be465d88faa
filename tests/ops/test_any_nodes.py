"""Random networks of all kinds of nodes, in every storage, with each preference, within budgets."""

from collections import Counter

import numpy as np
import pytest
from any_loads import check
from any_networks import any_images, any_layers
from any_nodes import any_nodes, any_wide
from any_same import any_same
from checked_network import CheckedNetwork
from in_numpy import is_in_numpy
from repeated import repeating

# Some of these have made wrong numbers of bytes, on a device with memory of its own.
MEMORY = 2309, 2368


@pytest.mark.parametrize("seed", [*range(7), 54, 92])
@pytest.mark.parametrize("make", [any_nodes, any_wide])
def test_any_nodes(make, seed, device):
    check(seed, make, device)


@pytest.mark.parametrize("seed", [*MEMORY, 37, 48, 109])
def test_on_a_device_with_memory_of_its_own(seed, discrete):
    check(seed, any_nodes, discrete)


@pytest.mark.parametrize("seed", [4, 13, 18, 28, 29, 34])
def test_operands_of_one_tensor(seed, device):
    """Products and attention of a tensor with itself."""
    check(seed, any_same, device)


@pytest.mark.parametrize("make", [any_nodes, any_wide, any_images, any_layers])
def test_repeated_operands(make, device):
    for seed in (1, 5):
        check(seed, repeating(make), device)


def test_operands_are_repeated():
    """And constants shared."""
    twice = shared = 0
    for seed in range(30):
        nets = any_same(seed), repeating(any_nodes)(seed), repeating(any_layers)(seed)
        for net in nets:
            readers = Counter()
            for node in net.nodes:
                counts = Counter(node.tensors())
                twice += any(count > 1 for count in counts.values())
                readers.update(tensor for tensor in counts if tensor.constant)
            shared += sum(count > 1 for count in readers.values())
    assert twice > 60 and shared > 2


def test_they_are_the_same_for_the_same_seed():
    for make in (any_nodes, any_wide, any_same, repeating(any_nodes)):
        one, other = ([(node.op, str(node.args)) for node in make(7).nodes] for _ in range(2))
        assert one == other


def test_they_are_of_many_kinds():
    nets = [any_nodes(seed) for seed in range(60)]
    assert len({node.op for net in nets for node in net.nodes}) > 70
    assert {net.x.rank for net in nets} == {1, 2, 3, 4, 5}
    assert all(is_in_numpy(net.graph()) for net in nets)


def test_what_rounding_decides_is_refused():
    """A difference of numbers that are nearly equal, and numbers that are too large."""
    net = CheckedNetwork(5, 7, seed=1, columns=(3,), most=100)
    near = net.add("aten.add.Scalar", net.x, 900.0, 1)
    assert near is not None and np.abs(net.held(near)).max() > 800
    assert net.add("aten.sub.Scalar", near, 900.0, 1) is None
    assert net.add("aten.mul.Scalar", near, 900.0) is None
    assert net.add("aten.repeat.default", net.x, [1, 3]) is None
    assert net.add("aten.view_copy.default", net.x, [6, 6]) is None
    assert net.last is near and len(net.nodes) == 1
