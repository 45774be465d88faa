"""Resolving: the graph of a method with dynamic shapes at the sizes of one call.

Everything is worked out from the inputs' sizes along the chain of nodes and symbols. A node whose
arguments have the same sizes as at the bounds is the same object in every resolved graph, and so
are its results: only what depends on a change is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.states import State
from vkrt.graph.symbols import Read, Symbol
from vkrt.graph.tensor import Tensor
from vkrt.ops.shapes import infer

Sizes = tuple[int, ...]

# A dimension is tried at its bound less these numbers: sizes may have to be multiples.
STEPS = (1, 2, 4, 8, 16, 32, 64)
# Sizes tried in search of the dynamic dimensions of a method
MOST_TRIES = 200


def resolve(graph: Graph, sizes: Sequence[Sizes | None],
            values: Mapping[Read, int] | None = None) -> Graph:
    """The graph at the sizes of a call.

    Args:
        graph: with the bounds.
        sizes: of each input; None for one that is not a tensor.
        values: what inputs hold where that decides sizes or places; 0 for what is left out.

    Returns:
        A graph with fixed sizes, which shares nodes and tensors that the call does not change with
        the given one; the given one itself where nothing changes.

    Raises:
        InputError: the sizes do not fit together; it names the first node that says so.
    """
    values = values or {}
    same = all(not isinstance(t, Tensor) or t.sizes == s for t, s in zip(graph.inputs, sizes))
    if same and not any(values.get(read) for read in graph.reads):
        return graph
    return _Resolver(graph, sizes, values).resolve()


class _Resolver:
    def __init__(self, graph: Graph, sizes: Sequence[Sizes | None], values: Mapping[Read, int]):
        self.graph = graph
        self.sizes = sizes
        self.values = values
        # What changes, and what symbols are.
        self.now: dict[Tensor, Tensor] = {}
        self.nodes: dict[Node, Node] = {}
        self.numbers: dict[Symbol, int] = {}

    def resolve(self) -> Graph:
        graph = self.graph
        for tensor, sizes in zip(graph.inputs, self.sizes):
            if isinstance(tensor, Tensor) and sizes is not None and sizes != tensor.sizes:
                self.now[tensor] = replace(tensor, sizes=sizes)
        for entry in graph.chain:
            if isinstance(entry, Symbol):
                self.numbers[entry] = self._number(entry)
            else:
                self._node(entry)
        outputs = [self._value(value) for value in graph.outputs]
        for index, symbol in graph.output_symbols.items():
            outputs[index] = self.numbers[symbol]
        return Graph(graph.name, [self._value(value) for value in graph.inputs], outputs,
                     [self.nodes.get(node, node) for node in graph.nodes], graph.file_arena,
                     graph.unsupported, states=[self._state(s) for s in graph.states]).finish()

    def _state(self, state: State) -> State:
        after = self.now.get(state.after, state.after)
        if after.sizes != state.before.sizes:
            raise self._refused(state.before.name, ValueError(
                f"a buffer of sizes {list(state.before.sizes)} would become "
                f"{list(after.sizes)}"))
        return replace(state, after=after)

    def _number(self, symbol: Symbol) -> int:
        try:
            return symbol.evaluate(lambda tensor: self.now.get(tensor, tensor).sizes,
                                   lambda part: self.numbers[part],
                                   lambda read: self.values.get(read, 0))
        except ArithmeticError as error:
            raise self._refused(f"a symbolic integer ({symbol.kind})", error) from None

    def _node(self, node: Node) -> None:
        args = tuple(self._value(arg) for arg in node.formulas or node.args)
        if all(_is_same(a, b) for a, b in zip(args, node.args)):
            return
        try:
            found = infer(node.op, args)
        except (FormatError, UnsupportedError, ArithmeticError, LookupError, TypeError,
                ValueError) as error:
            raise self._refused(str(node), error) from None
        outs = []
        for index, out in enumerate(node.outs):
            sizes = found[index] if index < len(found) else out.sizes
            if sizes != out.sizes:
                # Lowering may have made it a view of a constant at other sizes.
                self.now[out] = replace(out, sizes=sizes, constant=None)
            outs.append(self.now.get(out, out))
        self.nodes[node] = replace(node, args=args, outs=tuple(outs), formulas=None)

    def _value(self, value: Any) -> Any:
        """An argument as it is now."""
        if isinstance(value, Tensor):
            return self.now.get(value, value)
        if isinstance(value, Symbol):
            return self.numbers[value]
        if isinstance(value, (list, tuple)):
            return type(value)(self._value(item) for item in value)
        return value

    def _refused(self, where: str, error: Exception) -> InputError:
        given = ", ".join(f"{t.host_dtype}[{','.join(map(str, s))}]"
                          for t, s in zip(self.graph.inputs, self.sizes)
                          if isinstance(t, Tensor) and s is not None)
        read = "".join(f"; input {r.input} holds {n}" for r, n in self.values.items())
        return InputError(f"method '{self.graph.name}' cannot run on inputs {given}{read}: "
                          f"{where}: {error}")


def _is_same(a: Any, b: Any) -> bool:
    """Whether an argument is what it is at the bounds: the same tensors, equal numbers."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_is_same(x, y) for x, y in zip(a, b))
    return a is b or (not isinstance(a, Tensor) and type(a) is type(b) and a == b)


# Which dimensions a call may change

# A dimension of an input: numbers of the two
Place = tuple[int, int]


def find_dynamic(graph: Graph) -> None:
    """Notes in which dimensions a graph's inputs may be smaller, and its outputs then are.

    The file says only which tensors are dynamic. A dimension is one that may change if the graph
    resolves with less in it: in it alone, in those of all inputs at the same place, or in one other
    too. After many tries in vain the rest is taken to be dynamic: a call will tell.
    """
    search = _Search(graph)
    search.run()
    for values, found in ((graph.inputs, search.inputs), (graph.outputs, search.outputs)):
        for number, tensor in enumerate(values):
            if isinstance(tensor, Tensor):
                tensor.dynamic_dims = tuple(d for n, d in sorted(found) if n == number)


class _Search:
    """Tries smaller sizes.

    Attributes:
        inputs, outputs: the dimensions found to change.
        tries: how many are left.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.places: list[Place] = [(number, dim) for number, tensor in enumerate(graph.inputs)
                                    if isinstance(tensor, Tensor) for dim in tensor.dynamic_dims]
        self.inputs: set[Place] = set()
        self.outputs: set[Place] = set()
        self.tries = MOST_TRIES

    def run(self) -> None:
        for place in self.places:
            if place not in self.inputs:
                self._place(place)

    def _place(self, place: Place) -> None:
        bound = self.graph.inputs[place[0]].sizes[place[1]]
        half = bound - bound // 2
        alike = [other for other in self.places if other[1] == place[1]]
        if any(self._fits([place], bound, step) for step in (*STEPS, half)):
            return
        if any(self._fits(alike, bound, step) for step in (*STEPS, half)):
            return
        if any(self._fits([place, other], bound, step) for other in self.places
               if other != place for step in (1, half)):
            return
        if self.tries <= 0:
            self.inputs.add(place)

    def _fits(self, group: Sequence[Place], bound: int, step: int) -> bool:
        """Whether the graph resolves with `step` of `bound` less in a dimension, and as large a
        part less in the others; notes what changes then."""
        if step >= bound or self.tries <= 0:
            return False
        self.tries -= 1
        sizes = [t.sizes if isinstance(t, Tensor) else None for t in self.graph.inputs]
        for number, dim in group:
            old = sizes[number]
            assert old is not None  # a place is of a tensor
            size, rest = divmod(old[dim] * (bound - step), bound)
            if rest:
                return False
            sizes[number] = (*old[:dim], size, *old[dim + 1:])
        try:
            found = resolve(self.graph, sizes)
        except InputError:
            return False
        self.inputs.update(group)
        self.outputs.update(
            (number, dim) for number, value in enumerate(self.graph.outputs)
            if isinstance(value, Tensor) for dim, size in enumerate(value.sizes)
            if found.outputs[number].sizes[dim] != size)
        return True


def largest_and_near(graph: Graph) -> list[Graph]:
    """The graph at its bounds and, with dynamic shapes, a little less in every dynamic dimension.

    Sizes that are no multiple of 4 may need copies that those at the bounds do not: together the
    two tell how many bytes of activations any sizes need.
    """
    for step in STEPS if graph.is_dynamic else ():
        sizes = [tuple(n - step * (d in t.dynamic_dims) for d, n in enumerate(t.sizes))
                 if isinstance(t, Tensor) else None for t in graph.inputs]
        if any(0 in s or min(s, default=1) < 0 for s in sizes if s is not None):
            break
        with suppress(InputError):
            return [graph, resolve(graph, sizes)]
    return [graph]
