"""Which states of a graph are caches: those that can be kept in 8 bits, because nothing but
attention reads them, and those that have rows for places of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from vkrt.graph.graph import Graph, Node
from vkrt.graph.states import State
from vkrt.ops.broadcast import is_float
from vkrt.ops.caches import CACHES, written_rows
from vkrt.work.tensor import Tensor

# Who reads each tensor, in the order of the graph and once for each time
Readers = defaultdict[Tensor, list[Node]]


def caches_of(graph: Graph) -> frozenset[State]:
    """The states that are caches [batch, rows, heads, D] of floats: they begin with zeros, and
    nodes only write rows of them and attend over them.

    A node's kernel takes keys and values in one precision: if only one of the two could be such a
    state, neither is.
    """
    readers: Readers = defaultdict(list)
    for node in graph.nodes:
        for tensor in node.reads():
            readers[tensor].append(node)
    found = {state: values for state in graph.states if (values := _values(graph, state, readers))}
    while True:
        known = {value for values in found.values() for value in values}
        kept = {state: values for state, values in found.items()
                if all(known.issuperset(_caches(node)) for value in values
                       for node in readers[value])}
        if len(kept) == len(found):
            return frozenset(kept)
        found = kept


def _values(graph: Graph, state: State, readers: Readers) -> list[Tensor]:
    """All values of a cache in a run, from the first to the last; empty for other states."""
    cache = state.before
    if (not is_float(cache.dtype) or cache.rank != 4 or cache.sizes[3] % 4
            or not state.initial.zeros):
        return []
    values = [cache]
    while made := _changed(values[-1], readers[values[-1]]):
        values += made
    is_given_out = any(value is output for value in values for output in graph.outputs)
    if made is None or len(values) == 1 or values[-1] is not state.after or is_given_out:
        return []
    return values


def _changed(cache: Tensor, readers: list[Node]) -> list[Tensor] | None:
    """The new value of a cache that its last reader makes, alone in a list. Empty where no reader
    changes the cache. None where a reader is no operator of caches, or reads the old value after
    the change."""
    made: list[Tensor] = []
    for node in readers:
        places = [place for place, value in enumerate(node.args) if value is cache]
        if made or len(places) != 1 or places[0] not in CACHES.get(node.op, {}):
            return None
        result = CACHES[node.op][places[0]]
        if result is not None:
            made = list(node.outs[result:result + 1])
    return made


def _caches(node: Node) -> list[Tensor]:
    return [node.args[place] for place in CACHES[node.op] if place < len(node.args)]


def places_of(graph: Graph) -> dict[State, int]:
    """How many places of a text each state has rows for, see `StateTensor.places` of
    `vkrt.executable.states`."""
    makers = {out: node for node in graph.nodes for out in node.outs}
    return {state: _places(state, makers) for state in graph.states}


def _places(state: State, makers: Mapping[Tensor, Node]) -> int:
    value, places = state.after, 0
    while value is not state.before:
        node = makers.get(value)
        written = None if node is None else written_rows(node, value)
        if written is None:
            return 0
        value, rows = written
        places = min(places or rows, rows)
    return places
