"""A random network as loads have it: for each preference, in a storage, within memory budgets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from checked_network import CheckedNetwork
from dealing import STORAGES
from harness import HALF_TOLERANCE
from in_numpy import graph_in_numpy, is_in_numpy
from networks import PREFERENCES, Network, dynamic, halve, inputs_of, loaded
from support import relative_l2

from vkrt.dynamic.resolve import resolve
from vkrt.plan.scratch import alive

WEIGHTS = "auto", "direct", "copy", "stream"
MAX_ERROR = 1e-5
# How often results are compared with those of tensors that rounding may have made
SHAKES = 4


def check(number: int, make: Callable[[int], Network], device: Any) -> tuple[float, bool]:
    """Loads a network in many ways, which its number chooses. Asserts that all give the same
    numbers, and that memory is as planned, not more than whole, and not more than a budget.

    Returns:
        The largest relative L2 error, as a part of the largest allowed, and whether a preference
        takes less memory than the whole network.
    """
    storage, weights = STORAGES[number // 6 % 3], WEIGHTS[number // 54 % 4]
    loads = _Loads(number, make, device)
    loads.measure("speed", "buffer", fusions="off")
    taken = [loads.measure(prefer, storage)[0] for prefer in PREFERENCES]
    assert all(more >= less for more, less in itertools.pairwise(taken)), (
        f"{', '.join(PREFERENCES)} take {taken} bytes")
    prefer = PREFERENCES[number % 3]
    _, whole = loads.measure(prefer, storage, weights=weights)
    _, least = loads.measure(prefer, storage, weights=weights, memory_budget="smallest")
    assert least <= whole, f"{least} bytes as few as possible, and {whole} without a budget"
    budget = loads.chance.randint(least, whole)
    _, planned = loads.measure(prefer, storage, weights=weights, memory_budget=budget)
    assert planned <= budget, f"{planned} bytes, with a budget of {budget}"
    return loads.worst, taken[-1] < taken[0]


class _Loads:
    """Loads of one network: every third one has dynamic sizes, a quarter of those whose results are
    known in numpy are in half precision.

    Attributes:
        worst: the largest error so far, as a part of what is allowed.
    """

    def __init__(self, number: int, make: Callable[[int], Network], device: Any):
        self.worst, self.chance = 0.0, Random(number)
        self._number, self._make, self._device = number, make, device
        net = make(number)
        self._half = isinstance(net, CheckedNetwork) and self.chance.random() < 0.25
        self._allowed = HALF_TOLERANCE if self._half else MAX_ERROR
        self._dims = (_dynamic_dims(net, self.chance, self._half)
                      if number // 18 % 3 == 2 else ())
        self._inputs = _inputs(net, self._dims, self._half)
        # What numpy gives; without, what the first load gives
        self._expected: list[np.ndarray] = []
        if is_in_numpy(net.graph()):
            self._expected = [result for array in self._inputs
                              for result in _in_numpy(net, self._dims, array, self._half)]

    def measure(self, prefer: str, storage: str, **options: Any) -> tuple[int, int]:
        """Bytes of activations and of all memory, both at most, in a load whose results and bytes
        are as expected."""
        net = self._make(self._number)
        if self._half:
            halve(net)
        graph = dynamic(net, *self._dims) if self._dims else net.graph()
        what = f"{prefer}, {storage}, {options}"
        with loaded(net, graph, self._device, prefer, storage, **options) as (method, allocator):
            results = [result for array in self._inputs for result in method.execute([array])]
            self._expected = self._expected or results
            error = distance(results, self._expected)
            assert error < self._allowed, f"differs by {error:.1e}: {what}"
            self.worst = max(self.worst, error / self._allowed)
            measured, planned = allocator.peak_block_bytes, method.report.planned_peak
            assert measured == planned or (self._dims and measured < planned), (
                f"{measured} bytes, planned {planned}: {what}")
            return max(alive(method.work)), planned


def distance(found: list[np.ndarray], whole: list[np.ndarray]) -> float:
    """The largest relative L2 error of results, infinite where one alone has infinities or NaN in
    some places; their sizes have to be those."""
    assert [array.shape for array in found] == [array.shape for array in whole]
    worst = 0.0
    for one, other in zip(found, whole):
        finite = np.isfinite(other)
        if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
            return np.inf
        error = relative_l2(one[finite], other[finite])
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def _dynamic_dims(net: Network, chance: Random, half: bool) -> tuple[int, ...]:
    """Dimensions of the input of which the network can have fewer indices: of images both sides,
    of rows those, of nodes of all kinds some that are found to do."""
    if not isinstance(net, CheckedNetwork):
        return (2, 3) if net.x.rank == 4 else (net.x.rank - 2,)
    dims = [dim for dim in range(net.x.rank) if net.x.sizes[dim] > 1
            and len(_inputs(net, (dim,), half)) > 1]
    chance.shuffle(dims)
    both = tuple(sorted(dims[:2]))
    return both if len(both) < 2 or len(_inputs(net, both, half)) > 1 else both[:1]


def _in_numpy(net: Network, dims: tuple[int, ...], array: np.ndarray, half: bool,
              noise: np.random.Generator | None = None) -> list[np.ndarray]:
    graph = resolve(dynamic(net, *dims), [array.shape]) if dims else net.graph()
    return graph_in_numpy(graph, net.constants.data, [array], noise, 12 if half else 24)


def _inputs(net: Network, dims: tuple[int, ...], half: bool) -> list[np.ndarray]:
    """An input of each size that the network can have: what is joined has to fit, indices have to
    be inside, and results must not depend on rounding much."""
    if not isinstance(net, CheckedNetwork):
        return inputs_of(net, dims)
    found: list[np.ndarray] = []
    for array in inputs_of(net, dims):
        array = array.astype(np.float16 if half else np.float32)
        try:
            exact = _in_numpy(net, dims, array, half)
            worst = max(distance(_in_numpy(net, dims, array, half, np.random.default_rng(shake)),
                                 exact) for shake in range(SHAKES))
        except IndexError:
            continue
        if worst <= (HALF_TOLERANCE if half else MAX_ERROR) / 4:
            found.append(array)
    return found
