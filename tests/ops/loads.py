"""Random quantized networks by their numbers, loaded in several ways and compared with numpy."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from any_heads import any_heads
from any_quantized import Quantized, any_quantized_images, any_quantized_rows
from any_weights import any_weights
from harness import normal
from networks import dynamic, inputs_of, loaded
from support import relative_l2

from vkrt.device.policy import overridden, policy_of
from vkrt.work.tensor import Tensor

MAKERS = any_quantized_images, any_quantized_rows, any_weights, any_heads
STORAGES = "texel", "buffer", "texture3d"
PREFERENCES = "speed", "balanced", "memory"
BUDGETS: tuple[dict[str, Any], ...] = (
    {}, {}, {"weights": "copy"}, {"weights": "direct"}, {"weights": "stream"},
    {"weights": "stream", "memory_budget": "smallest"},
    {"memory_budget": "smallest", "stream_lookahead": 0},
    {"weights": "copy", "order": "eager", "chunk": 4096})
WAYS = 4


def make(number: int) -> Quantized:
    """The network of a number."""
    return MAKERS[number % len(MAKERS)](number, dynamic=is_dynamic(number))


def is_dynamic(number: int) -> bool:
    return number // len(MAKERS) % 3 == 2 and MAKERS[number % len(MAKERS)] is not any_heads


def ways(number: int) -> Iterator[dict[str, Any]]:
    """Options of loads, with "other" where it is loaded as by another device's profile."""
    yield {"storage": STORAGES[number % 3], "prefer": "speed", "fusions": "off"}
    chance = random.Random(number)
    for _ in range(WAYS - 1):
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


def check(net: Quantized, number: int, device: Any, way: dict[str, Any], alone: bool) -> float:
    """The largest relative L2 error of results; asserts that they are right.

    Args:
        alone: whether each node is compared by itself, with what the device made of those before.
    """
    options = dict(way)
    other = options.pop("other", None)
    if other is not None:
        with profile(device, other):
            return check(net, number, device, options, alone)
    if alone:
        net = make(number)
        net.more = [out for node in net.nodes for out in node.outs][:-1]
    arrays, graph = [normal(*net.x.sizes, seed=3)], net.graph()
    outputs = graph.outputs
    if is_dynamic(number):
        arrays += inputs_of(net, net.dynamic_dims)
        arrays += arrays[1:3]
        graph = dynamic(net, *net.dynamic_dims)
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
    """The relative L2 error of a result."""
    assert found.shape == expected.shape, f"sizes {found.shape}, not {expected.shape}"
    expected = expected.astype(found.dtype)
    error = relative_l2(found, expected)
    bound = net.error_of(tensor) if alone else net.max_error
    if found.dtype.kind != "f" and net.is_exact:
        bound = 0.0
    node = next(node for node in net.nodes if tensor in node.outs)
    assert error <= bound, f"{node.op} {list(found.shape)} differs by {error:.1e}"
    return error
