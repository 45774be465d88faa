"""A random quantized network as loads have it, in ways that its number chooses, and in numpy."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from any_quantized import Quantized
from dealing import STORAGES
from networks import PREFERENCES, dynamic, inputs_of, loaded
from support import relative_l2

from vkrt.device.policy import overridden, policy_of
from vkrt.work.tensor import Tensor

BUDGETS: tuple[dict[str, Any], ...] = (
    {}, {}, {"weights": "copy"}, {"weights": "direct"}, {"weights": "stream"},
    {"weights": "stream", "memory_budget": "smallest"},
    {"memory_budget": "smallest", "stream_lookahead": 0},
    {"weights": "copy", "order": "eager", "chunk": 4096})
WAYS = 3


def ways(number: int) -> Iterator[dict[str, Any]]:
    """Options of loads, with "other" where it is loaded as by another device's profile."""
    chance = random.Random(number)
    for _ in range(WAYS):
        yield {"storage": chance.choice(STORAGES), "prefer": chance.choice(PREFERENCES),
               "fusions": chance.choice(("on", "on", "on", "off")), **chance.choice(BUDGETS),
               "specialize": chance.choice(("few", "few", "all", "none")),
               "other": chance.randrange(1000) if chance.random() < 0.4 else None}


@contextmanager
def profile(device: Any, seed: int) -> Iterator[None]:
    """The driver's profile with other figures, as those of GPUs are."""
    chance = random.Random(seed)
    policy = policy_of(device.info)
    tuning = replace(
        policy.tuning, registers=chance.choice((32, 64, 128, 256, 1 << 16)),
        shares=chance.random() < 0.3, float_products=chance.random() < 0.5,
        reads_ahead=chance.random() < 0.5, lanes=chance.choice((64, 1024)),
        wide_depthwise=chance.choice((1, 3, 20)), tall_depthwise=chance.random() < 0.5)
    policy = replace(
        policy, tuning=tuning, max_texels=chance.choice((None, None, 1 << 12, 1 << 16)),
        avoid_recompile_padding=chance.random() < 0.5,
        submission_seconds=chance.choice((None, None, 1e-5)))
    with overridden(policy):
        yield


def check(number: int, make: Callable[[int, bool], Quantized], device: Any) -> float:
    """Loads a network in several ways. Asserts that all give numpy's numbers, in the planned bytes.

    Returns:
        The largest relative L2 error, as a part of what is allowed.
    """
    worst = check_nodes(number, make, device)
    for way in ways(number):
        worst = max(worst, check_way(number, make, device, way))
    return worst


def check_nodes(number: int, make: Callable[[int, bool], Quantized], device: Any) -> float:
    """As `check`, of each node by itself, with what the device made of those before."""
    way = {"storage": STORAGES[number % 3], "prefer": "speed", "fusions": "off"}
    return check_way(number, make, device, way, alone=True)


def check_way(number: int, make: Callable[[int, bool], Quantized], device: Any,
              way: dict[str, Any], alone: bool = False) -> float:
    """As `check`, of one way."""
    options = dict(way)
    other = options.pop("other", None)
    if other is not None:
        with profile(device, other):
            return check_way(number, make, device, options, alone)
    is_dynamic = number // 4 % 3 == 2
    net = make(number, is_dynamic)
    if alone:
        net.more = [out for node in net.nodes for out in node.outs][:-1]
    dims = net.dynamic_dims if is_dynamic else ()
    arrays, graph = inputs_of(net, dims), net.graph()
    outputs = graph.outputs
    if dims:
        arrays += arrays[:2]
        graph = dynamic(net, *dims)
    worst = 0.0
    with loaded(net, graph, device, options.pop("prefer"), options.pop("storage"), **options) as (
            method, allocator):
        for array in map(net.input, arrays):
            found = dict(zip(outputs, method.execute([array]), strict=True))
            expected = net.each(array, found) if alone else net.values_for(array)
            worst = max([worst, *(compare(found[tensor], expected[tensor], net, tensor, alone)
                                  for tensor in outputs)])
        planned = method.report.planned_peak if graph.is_dynamic else method.plan.peak_bytes
        assert allocator.peak_block_bytes == planned, (
            f"{allocator.peak_block_bytes} bytes, {planned} planned")
    return worst


def compare(found: np.ndarray, expected: np.ndarray, net: Quantized, tensor: Tensor, alone: bool
            ) -> float:
    """The relative L2 error of a result, as a part of what is allowed."""
    assert found.shape == expected.shape, f"sizes {found.shape}, not {expected.shape}"
    expected = expected.astype(found.dtype)
    error = relative_l2(found, expected)
    bound = net.error_of(tensor) if alone else net.max_error
    if found.dtype.kind != "f" and net.is_exact:
        bound = 0.0
    node = next(node for node in net.nodes if tensor in node.outs)
    assert error <= bound, f"{node.op} {list(found.shape)} differs by {error:.1e}"
    return error / bound if bound else 0.0
