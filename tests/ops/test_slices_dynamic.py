"""Nodes in slices of hidden channels where sizes change: the same slices at all sizes, each weight
once."""

from contextlib import closing

import pytest
from any_networks import any_chain
from harness import normal
from networks import Network, dynamic, expanded, near, results_at
from small_graphs import rewritten

from vkrt.dynamic.resolve import resolve
from vkrt.lowering.lowering import lower
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.attributes import OUTPUTS
from vkrt.passes.slices import chains
from vkrt.plan.options import LoadOptions
from vkrt.plan.scratch import alive
from vkrt.work.target import Slices, Target

MEMORY = Target(prefer="memory")


def mlp(kind: str, rows: int = 33) -> Network:
    """Two gated layers of a transformer, whose weights are of a kind of `Network.layer`; the first
    layer of the second one has a bias."""
    net = Network(1, rows, 64)

    for bias in (False, True):
        first = net.last
        gate = net.node("aten.sigmoid.default", net.scaled_layer(kind, 192))
        net.last = first
        net.node("aten.mul.Tensor", gate, net.scaled_layer(kind, 192, bias))
        net.node("aten.add.Tensor", net.scaled_layer(kind, 64), first, 1)
    return net


KINDS = ("float", "groups", "channels")


@pytest.mark.parametrize("kind", KINDS)
def test_slices_are_the_same_at_other_sizes(kind):
    """And whole with one row, whose kernel several layers share; all read the same weights."""
    graph = dynamic(mlp(kind), 1)
    base = lower(graph, MEMORY)
    slices = [part for part in base.memo.parts if isinstance(part, Slices)]
    assert len(base.memo.parts) == 2 and slices and min(part.slices for part in slices) > 1
    assert max(alive(base)) < 0.6 * max(alive(lower(graph, Target(prefer="speed"))))
    for rows in (32, 7, 2, 1):
        work = lower(resolve(graph, [(1, rows, 64)]), MEMORY, base)
        assert [part for part in work.memo.parts if isinstance(part, Slices)] == (
            [] if rows == 1 else slices)
        assert len(work.prepacks) == len(base.prepacks)


def test_convolutions_of_one_pixel_are_in_slices_too():
    """Their slices have weights of their own, and whole ones would be loaded beside them."""
    graph = dynamic(any_chain(637), 2, 3)
    base = lower(graph, MEMORY)
    slices = [part for part in base.memo.parts if isinstance(part, Slices)]
    small = resolve(graph, [(1, 3, 2, 2)])
    assert slices and any(node.outs[0].sizes[2:] == (1, 1) for node in small.nodes)
    work = lower(small, MEMORY, base)
    assert [part for part in work.memo.parts if isinstance(part, Slices)] == slices
    assert len(work.prepacks) == len(base.prepacks)


def test_weights_stay_whole():
    """Where another size may need all of it; rows of it are weights of their own elsewhere."""
    fixed, changing = rewritten(mlp("float").graph(), prefer="memory", skipped=frozenset(
        {"divide_activations"})), dynamic(mlp("float"), 1)
    for graph, keeps in ((fixed, False), (changing, True)):
        parts = lower(graph, MEMORY)
        assert (OUTPUTS in {name for entry in parts.memo.nodes
                            for name in entry.node.attributes}) == keeps
    with_groups = lower(mlp("groups").graph(), MEMORY)
    assert any(OUTPUTS in entry.node.attributes for entry in with_groups.memo.nodes)


def test_groups_are_whole():
    """A group of inputs has one scale, and a slice begins with a group."""
    for group, unit in ((32, 32), (64, 64), (96, 96)):
        net = Network(1, 9, 64)
        net.layer("groups", 192)
        net.layer("groups", 64, group=group)
        (chain,) = chains(net.graph())
        assert chain.unit == unit
    # One group, and groups that are no whole texels
    for group in (192, 48):
        one = Network(1, 9, 64)
        one.layer("groups", 192)
        one.layer("groups", 64, group=group)
        assert not list(chains(one.graph()))


@pytest.mark.parametrize("weights", ["auto", "direct", "stream"])
@pytest.mark.parametrize("storage", ["texel", "buffer", "texture3d"])
@pytest.mark.parametrize("kind", KINDS)
def test_same_numbers(kind, storage, weights, device):
    inputs = [normal(1, rows, 64, seed=rows) for rows in (33, 1, 2, 31, 1, 33)]
    whole, before = results_at(mlp(kind), (1,), device, inputs, "speed", storage, weights=weights)
    parts, after = results_at(mlp(kind), (1,), device, inputs, "memory", storage, weights=weights)
    # In images each part of a weight of floats would be one of its own.
    assert after < before or (kind, storage) == ("float", "texture3d")
    near(parts, whole)


@pytest.mark.parametrize("dim", [0, 2])
def test_images(dim, device):
    """Blocks of convolutions, for several images and for images of several heights."""
    inputs = [normal(*((n, 3, 25, 25) if dim == 0 else (3, 3, n, 25)), seed=n)
              for n in ((3, 1, 2) if dim == 0 else (25, 24, 9))]
    whole, before = results_at(expanded(25, 3), (dim,), device, inputs, "speed", "texel")
    parts, after = results_at(expanded(25, 3), (dim,), device, inputs, "memory", "texel")
    assert after < before
    near(parts, whole)


@pytest.mark.parametrize("weights", ["auto", "stream"])
def test_smallest_budgets(weights, device):
    """Of a program that is loaded for speed, too."""
    inputs = [normal(1, rows, 64, seed=rows) for rows in (333, 1, 40)]
    peaks = []
    for fusions in ("no-divide_activations", "on"):
        net = mlp("groups", 333)
        options = LoadOptions(storage="texel", prefer="speed", weights=weights, fusions=fusions,
                              memory_budget="smallest")
        with closing(Method(dynamic(net, 1), [Source.wrap(bytes(net.constants.data))], device,
                            options=options)) as method:
            peaks.append(method.plan.peak_bytes)
            results = [method.execute([array])[0] for array in inputs]
        if fusions != "on":
            whole = results
    assert peaks[1] < peaks[0]
    near(results, whole)
