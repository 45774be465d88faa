"""Ranges: what calls of a method with dynamic shapes may change.

The file says which inputs are dynamic, not in which dimensions, and has upper bounds only. The rest
is found by trying sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from vkrt.dynamic.resolve import Sizes, assign_sizes, resolve
from vkrt.dynamic.runtime_scalars import find_runtime_scalars
from vkrt.errors import InputError
from vkrt.graph.graph import Graph
from vkrt.work.limits import SizeValue
from vkrt.work.tensor import Tensor

# A dimension is tried at its bound minus these numbers: sizes may have to be multiples.
STEPS = (1, 2, 4, 8, 16, 32, 64)
# A size that a network halves five times is a multiple of this.
COARSE = 32
# Sizes tried in search of the dynamic dimensions of a method
MAX_TRIES = 200
# Values tried for numbers that decide sizes, if 0 does not work; then the inputs' sizes are tried
VALUES = (0, 1, 2, 3, 4, 8, 16, 32, 64, 128)

# A dimension of an input: numbers of the two
Place = tuple[int, int]


def find_dynamic(graph: Graph) -> None:
    """Works out the sizes of a graph that comes from a file, and what calls may change in them.

    The graph gets the sizes it has at the largest inputs, or at smaller ones if these do not fit
    together. If no sizes fit, the graph stays as it is: lowering names the contradiction.

    A dimension may change if the graph resolves with a smaller size of it: of it alone, of the same
    dimension of all inputs, of all dimensions of the same size, or of one other dimension too.
    After many failed tries the other dimensions are taken to be dynamic. So are all dimensions of
    an input in which none is found. A call will tell.
    """
    find_runtime_scalars(graph)
    for sizes, values in _starts(graph) if graph.is_dynamic else ():
        with suppress(InputError):
            assign_sizes(graph, sizes, values)
            break
    search = _Search(graph)
    search.run()
    for tensors, found in ((graph.inputs, search.inputs), (graph.outputs, search.outputs)):
        for number, tensor in enumerate(tensors):
            if isinstance(tensor, Tensor):
                tensor.dynamic_dims = tuple(d for n, d in sorted(found) if n == number)
    graph.axes = search.axes


def _starts(graph: Graph) -> Iterator[tuple[list[Sizes | None], Mapping[SizeValue, int]]]:
    """Inputs to try for sizes: the largest, the largest with other values, then smaller ones."""
    search = _Search(graph)
    largest = graph.input_sizes()
    # A number that comes from elsewhere is often one of the sizes.
    values = dict.fromkeys((*VALUES, *(size for sizes in largest for size in sizes or ())))
    # Counts have their maximum where that is possible.
    most: dict[SizeValue, int] = {count: count.most for count in graph.counts}
    for value in values if graph.reads else (0,):
        yield largest, dict.fromkeys(graph.reads, value) | most
    for value in values if most else ():
        yield largest, {read: min(value, most.get(read, value)) for read in graph.reads}
    groups = itertools.chain(*map(search.groups, search.places), search.coarse_groups())
    tried = (search.less(group, step) for group, step in groups)
    for sizes in itertools.islice((sizes for sizes in tried if sizes is not None), MAX_TRIES):
        yield sizes, dict.fromkeys(graph.reads, 0)


class _Search:
    """Tries smaller sizes."""

    def __init__(self, graph: Graph):
        self.graph = graph
        # The dimensions of inputs that may be dynamic
        self.places: list[Place] = [(number, dim) for number, tensor in enumerate(graph.inputs)
                                    if isinstance(tensor, Tensor) for dim in tensor.dynamic_dims]
        # The dimensions found to change
        self.inputs: set[Place] = set()
        self.outputs: set[Place] = set()
        # The dimensions of inputs in groups that change together
        self.axes: list[tuple[Place, ...]] = []
        self.tries = MAX_TRIES  # how many are left

    def run(self) -> None:
        for place in self.places:
            if place in self.inputs:
                continue
            group = next((group for group, step in self.groups(place)
                          if self._fits(group, step)), None)
            if group is not None:
                self.axes.append(tuple(group))
                # A size that is rounded down may be the same a little below the bound.
                for size in (1, 2, 3):
                    self._fits(group, self._size(group[0]) - size)
            elif self.tries <= 0 or self._size(place) != self._bound(place):
                self.inputs.add(place)
        self._find_counted()
        # The file says that each of these inputs changes in some dimension.
        found = {number for number, _ in self.inputs}
        self.inputs.update(place for place in self.places if place[0] not in found)
        for number, value in enumerate(self.graph.outputs):
            if isinstance(value, Tensor) and value.bounds is not None:
                self.outputs.update((number, d) for d, (size, most) in enumerate(
                    zip(value.sizes, value.bounds, strict=True)) if size != most)

    def _find_counted(self) -> None:
        """Notes the dimensions of outputs that change with a count of the data."""
        for count in self.graph.counts:
            for less in (1, 2, count.most):
                with suppress(InputError):
                    value = self.graph.values.get(count, 0) - less
                    if value >= 0:
                        self._note_outputs(resolve(self.graph, self.graph.input_sizes(),
                                                   {count: value}))

    def groups(self, place: Place) -> Iterator[tuple[Sequence[Place], int]]:
        """Groups that may change together with `place`, and how much less of it to try."""
        size = self._size(place)
        half, steps = size - size // 2, _steps(size)
        alike = [other for other in self.places if other[1] == place[1]]
        alike.sort(key=lambda other: other != place)
        same = [place, *(other for other in self.places if other != place
                         and other not in self.inputs and self._size(other) == size)]
        groups = ([place], alike, same)
        for number, group in enumerate(groups):
            if group not in groups[:number]:
                yield from ((group, step) for step in steps)
        for start in ([place], same)[:1 + (len(same) > 1)]:
            for other in self.places:
                if other not in start:
                    yield from (([*start, other], step) for step in (1, half))

    def coarse_groups(self) -> Iterator[tuple[Sequence[Place], int]]:
        """Every place, and all of them, with coarse steps down to the smallest size."""
        for group in (*([place] for place in self.places), self.places):
            size = self._size(group[0]) if group else 0
            yield from ((group, step) for step in range(size % COARSE or COARSE, size, COARSE))

    def less(self, group: Sequence[Place], step: int) -> list[Sizes | None] | None:
        """Sizes of inputs with `step` less in the first dimension of a group, and less in
        proportion in the others; None where there are none."""
        size = self._size(group[0])
        return sized(self.graph, {tuple(group): size - step}) if step < size else None

    def _size(self, place: Place) -> int:
        return self.graph.inputs[place[0]].sizes[place[1]]

    def _bound(self, place: Place) -> int:
        tensor = self.graph.inputs[place[0]]
        return (tensor.bounds or tensor.sizes)[place[1]]

    def _fits(self, group: Sequence[Place], step: int) -> bool:
        """Whether the graph resolves with less in a group; notes which dimensions change then."""
        if not 0 < step < self._size(group[0]) or self.tries <= 0:
            return False
        sizes = self.less(group, step)
        if sizes is None:
            return False
        self.tries -= 1
        try:
            found = resolve(self.graph, sizes)
        except InputError:
            return False
        self.inputs.update(group)
        self._note_outputs(found)
        return True

    def _note_outputs(self, other: Graph) -> None:
        """Notes the dimensions of outputs that have another size in a resolved graph."""
        self.outputs.update(
            (number, dim) for number, value in enumerate(self.graph.outputs)
            if isinstance(value, Tensor)
            for dim, (size, now) in enumerate(zip(value.sizes, other.outputs[number].sizes))
            if size != now)


def _steps(size: int) -> list[int]:
    """How much less than a size to try. Where sizes have to be multiples of an unknown n, this one
    is k * n. Half of it is a multiple too if k is even; otherwise one p-th less is, for an odd
    prime p that divides k."""
    primes, left = [], size // (size & -size) if size else 1
    for number in itertools.count(3, 2):
        if number * number > left:
            break
        if left % number == 0:
            primes.append(number)
            while left % number == 0:
                left //= number
    if left > 1:
        primes.append(left)
    return list(dict.fromkeys((*STEPS, size - size // 2, *(size // prime for prime in primes))))


def sized(graph: Graph, changes: Mapping[tuple[Place, ...], int]) -> list[Sizes | None] | None:
    """Sizes of a graph's inputs with other sizes in some groups of dimensions: `changes` has the
    size of the first dimension of each group, and the others are in proportion. None where a
    proportion is no integer."""
    sizes = graph.input_sizes()
    for group, first in changes.items():
        whole = graph.inputs[group[0][0]].sizes[group[0][1]]
        for number, dim in group:
            old = sizes[number]
            assert old is not None  # a place is of a tensor
            size, rest = divmod(graph.inputs[number].sizes[dim] * first, whole)
            if rest:
                return None
            sizes[number] = (*old[:dim], size, *old[dim + 1:])
    return sizes
