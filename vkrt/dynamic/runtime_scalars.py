"""Runtime scalars: numbers that a method reads from its inputs and leaves to its kernels.

Each decode step of a language model gets a new position from an input: where rows go in a cache and
how far attention looks. If no size and nothing else depends on it, it is no part of the shape of a
call (`vkrt.compiler.shape.Shape`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import RuntimeScalar, Symbol, symbols_in
from vkrt.ops.registry import known, operator
from vkrt.work.limits import Count, Limit, Read, SizeValue
from vkrt.work.tensor import Tensor


def find_runtime_scalars(graph: Graph) -> None:
    """Marks the symbols of a graph that are left to kernels, and takes them out of its reads."""
    fixed = {read for read in graph.reads if not _is_readable(graph, read)}
    while True:
        search = _Search(graph, fixed)
        if search.fixed == fixed:
            break
        fixed = search.fixed
    for symbol, read in search.reads.items():
        symbol.runtime_scalar = (graph.inputs[read.input], read)
    if search.reads:
        for entry in graph.chain:
            if isinstance(entry, Node) and entry.formulas is not None:
                entry.update_args()
        # Nodes read the inputs now.
        graph.finish()


def _is_readable(graph: Graph, read: SizeValue) -> bool:
    if isinstance(read, Count):
        return False
    tensor = graph.inputs[read.input]
    return isinstance(tensor, Tensor) and tensor.dtype == "int32" and not tensor.dynamic_dims


class _Search:
    """One pass over the chain of a graph."""

    def __init__(self, graph: Graph, fixed: Set[SizeValue]):
        self.fixed = set(fixed)  # the reads that are part of the shape, as far as known
        # For each symbol to which kernels would add an input element, that element
        self.reads: dict[Symbol, Read] = {}
        reasons: set[Read] = set()
        for entry in graph.chain:
            if isinstance(entry, Symbol):
                self._symbol(entry)
            elif entry.formulas is not None:
                reasons |= self._node(entry)
        self._fix(graph.output_symbols.values())
        self.fixed |= set(self.reads.values()) - reasons

    def _symbol(self, symbol: Symbol) -> None:
        if symbol.kind == "read":
            if symbol.args[0] not in self.fixed:
                self.reads[symbol] = symbol.args[0]
            return
        found = [self.reads.get(arg) for arg in symbol.args]
        if not any(found):
            return
        if len(found) != 2 or isinstance(symbol.bound, float):
            # Kernels add integers.
            self._fix(symbol.args)
            return
        a, b = found
        if symbol.kind in ("add", "sub") and b is None:
            assert a is not None
            self.reads[symbol] = a
        elif symbol.kind == "add" and a is None:
            assert b is not None
            self.reads[symbol] = b
        elif symbol.kind != "sub" or a != b:
            self._fix(symbol.args)

    def _node(self, node: Node) -> set[Read]:
        """Looks at the arguments of a node; returns the reads that are left to kernels for it."""
        assert node.formulas is not None
        places = {place: self.reads[arg] for place, arg in enumerate(node.formulas)
                  if isinstance(arg, Symbol) and arg in self.reads}
        for arg in node.formulas:
            if isinstance(arg, (list, tuple)):
                self._fix(symbols_in(arg))
        if not places:
            return set()
        found = operator(node.op)
        if found is None or found.runtime_scalar is None or not _fits(node.formulas, places, found):
            self.fixed.update(places.values())
            return set()
        return set(places.values()) if found.runtime_scalar.is_reason else set()

    def _fix(self, symbols: Any) -> None:
        self.fixed.update(self.reads[s] for s in symbols
                          if isinstance(s, Symbol) and s in self.reads)


def _fits(args: Sequence[Any], places: Mapping[int, Read], found: Any) -> bool:
    names = {found.schema.parameters[place].name for place in places
             if place < len(found.schema.parameters)}
    return (names <= set(found.runtime_scalar.names) and len(set(places.values())) == 1
            and found.runtime_scalar.fits(args, places.keys()))


def limits(graph: Graph) -> tuple[Limit, ...]:
    """The values that the input elements that kernels read may hold at a graph's sizes."""
    result: dict[Read, Limit] = {}
    for limit in _all_limits(graph):
        old = result.get(limit.read, limit)
        result[limit.read] = Limit(limit.read, max(old.low, limit.low), min(old.high, limit.high),
                                   limit.where if limit.high < old.high else old.where)
    return tuple(result.values())


def _all_limits(graph: Graph) -> Iterator[Limit]:
    for node in graph.nodes:
        scalar = next((arg for arg in node.args if isinstance(arg, RuntimeScalar)), None)
        if scalar is not None:
            found = known(node.op)
            assert found.runtime_scalar is not None
            most = found.runtime_scalar.most(*found.schema.read(node.args))
            yield Limit(scalar.read, -int(scalar), most - int(scalar), str(node))
