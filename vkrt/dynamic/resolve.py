"""Resolving: the graph of a method with dynamic shapes at the sizes of one call.

Everything is worked out from the inputs' sizes along the chain of nodes and symbols. What depends
on no change is the same object in every resolved graph.

The sizes in a file are bounds: each is the largest size of a tensor at any inputs. A tensor may be
largest where an input is small, so all bounds together may belong to no call. A graph that comes
from a file therefore gets sizes of one call first (`assign_sizes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import gt
from typing import Any

from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.graph.graph import Graph, Node
from vkrt.graph.numbers import Number
from vkrt.graph.states import State
from vkrt.graph.symbols import Symbol
from vkrt.ops.registry import infer, known
from vkrt.work.limits import Count, SizeValue
from vkrt.work.tensor import Tensor

Sizes = tuple[int, ...]


def resolve(graph: Graph, sizes: Sequence[Sizes | None],
            values: Mapping[SizeValue, int] | None = None) -> Graph:
    """The graph at the sizes of a call, with fixed sizes. It shares what the call does not change
    with the given graph, and is the given graph where nothing changes.

    Args:
        sizes: of each input; None for one that is not a tensor.
        values: input elements and counts of the data that decide sizes or places; those that are
            left out are as in the graph.

    Raises:
        InputError: the sizes do not fit together, or a tensor would have more than the program
            allows; it names the first node that says so.
    """
    values = {read: graph.values.get(read, 0) for read in graph.reads} | dict(values or {})
    same = all(not isinstance(t, Tensor) or t.sizes == s for t, s in zip(graph.inputs, sizes))
    if same and all(values[read] == graph.values.get(read, 0) for read in graph.reads):
        return graph
    return _Resolver(graph, sizes, values).resolve()


def assign_sizes(graph: Graph, sizes: Sequence[Sizes | None],
                 values: Mapping[SizeValue, int]) -> None:
    """Gives the tensors of a graph that comes from a file the sizes they have at some inputs.

    The sizes in the file become the tensors' bounds. Sizes that do not depend on the inputs stay,
    for `vkrt.ops.operator.Operator.check` to compare. The graph is unchanged if this raises
    InputError: the sizes do not fit together, or a tensor would have more than the file says.
    """
    resolver = _Resolver(graph, sizes, values, from_file=True)
    resolver.resolve()
    for tensor, now in resolver.now.items():
        tensor.bounds, tensor.sizes = tensor.sizes, now.sizes
    for symbol, number in resolver.numbers.items():
        symbol.bound = number
    for entry in graph.chain:
        if isinstance(entry, Node) and entry.formulas is not None:
            entry.update_args()
    for index, symbol in graph.output_symbols.items():
        graph.outputs[index] = symbol.bound
    graph.values = dict(values)


class _Resolver:
    def __init__(self, graph: Graph, sizes: Sequence[Sizes | None], values: Mapping[SizeValue, int],
                 from_file: bool = False):
        self.graph = graph
        self.sizes = sizes
        self.values = values
        # Whether the graph has the sizes of the file. Then everything that inputs can change is
        # computed, even where it turns out as the file says.
        self.from_file = from_file
        # The tensors and nodes that change, and the values of symbols.
        self.now: dict[Tensor, Tensor] = {}
        self.nodes: dict[Node, Node] = {}
        self.numbers: dict[Symbol, Number] = {}

    def resolve(self) -> Graph:
        graph = self.graph
        for tensor, sizes in zip(graph.inputs, self.sizes):
            if isinstance(tensor, Tensor) and sizes is not None and (
                    sizes != tensor.sizes or (self.from_file and tensor.dynamic_dims)):
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
                     graph.unsupported, values=self.values,
                     states=[self._state(s) for s in graph.states], notes=graph.notes).finish()

    def _state(self, state: State) -> State:
        after = self.now.get(state.after, state.after)
        if after.sizes != state.before.sizes:
            raise self._refused(state.before.name, ValueError(
                f"a buffer of sizes {list(state.before.sizes)} would become "
                f"{list(after.sizes)}"))
        return replace(state, after=after)

    def _number(self, symbol: Symbol) -> Number:
        try:
            return symbol.evaluate(lambda tensor: self.now.get(tensor, tensor).sizes,
                                   lambda part: self.numbers[part],
                                   lambda read: self.values.get(read, 0))
        except ArithmeticError as error:
            raise self._refused(f"a symbol ({symbol.kind})", error) from None

    def _node(self, node: Node) -> None:
        args = tuple(self._value(arg) for arg in node.formulas or node.args)
        is_sized = not self.from_file or node.formulas is None
        if is_sized and all(_is_same(a, b) for a, b in zip(args, node.args)):
            return
        try:
            found = infer(node.op, args)
        except (FormatError, UnsupportedError, ArithmeticError, LookupError, TypeError,
                ValueError) as error:
            raise self._refused(str(node), error) from None
        if len(found) != len(node.outs):
            raise self._refused(str(node), ValueError(
                f"{len(found)} results, the program has {len(node.outs)}"))
        if found and not self.from_file:
            self._check_alike(node, args, found[0])
        outs = []
        for index, (out, sizes) in enumerate(zip(node.outs, found, strict=True)):
            most = out.sizes if self.from_file else out.bounds
            if most is not None and (len(sizes) != len(most) or any(map(gt, sizes, most))):
                raise self._refused(str(node), ValueError(
                    f"result {index} would have sizes {list(sizes)}, the program allows no more "
                    f"than {list(most)}"))
            if sizes != out.sizes or self.from_file:
                self.now[out] = replace(out, sizes=sizes)
            outs.append(self.now.get(out, out))
        self.nodes[node] = replace(node, args=args, outs=tuple(outs), formulas=None)

    def _check_alike(self, node: Node, args: Sequence[Any], result: Sizes) -> None:
        """Refuses a tensor that is broadcast in this call but not in the program.

        If tensors are added, the exporter takes two dynamic dimensions of them for one size: the
        program does not hold where one of the two is 1 and the other is not. `args` are the node's
        at the sizes of the call, and `result` has the sizes of its first result.
        """
        found = known(node.op)
        tensors = [arg for parameter, arg in zip(found.schema.parameters, args)
                   if parameter.name in found.broadcasts and isinstance(arg, Tensor)]
        for tensor in tensors:
            bounds = tensor.bounds or tensor.sizes
            for back in range(1, min(tensor.rank, len(result)) + 1):
                if tensor.sizes[-back] != 1 or bounds[-back] == 1 or result[-back] == 1:
                    continue
                larger = next((t for t in tensors if back <= t.rank and t.sizes[-back] != 1), None)
                alike = [(f"dimension {t.rank - back} of {t}", t.sizes[-back])
                         for t in tensors if t is tensor or t is larger]
                if larger is None:
                    alike.append((f"dimension {len(result) - back} of the result", result[-back]))
                (one, size), (other, other_size) = alike
                raise self._refused(str(node), ValueError(
                    f"the program has one size for {one} and {other}, got {size} and "
                    f"{other_size}; pass inputs in which they are equal"))

    def _value(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.now.get(value, value)
        if isinstance(value, Symbol):
            return value.number(self.numbers[value])
        if isinstance(value, (list, tuple)):
            return type(value)(self._value(item) for item in value)
        return value

    def _refused(self, where: str, error: Exception) -> InputError:
        given = ", ".join(f"{t.host_dtype}[{','.join(map(str, s))}]"
                          for t, s in zip(self.graph.inputs, self.sizes)
                          if isinstance(t, Tensor) and s is not None)
        read = "".join(f"; count {r.number} of the data is {n}" if isinstance(r, Count)
                       else f"; input {r.input} holds {n}" for r, n in self.values.items())
        return InputError(f"method '{self.graph.name}' cannot run on inputs {given}{read}: "
                          f"{where}: {error}")


def _is_same(a: Any, b: Any) -> bool:
    """Whether an argument is what it is in the graph: the same tensors, equal numbers."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_is_same(x, y) for x, y in zip(a, b))
    return a is b or (not isinstance(a, Tensor) and type(a) is type(b) and a == b)
