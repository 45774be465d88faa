"""The graph of a method: its tensors and the operators on them, in order.

All delegates and the kernels between them are one list of nodes; what one hands to the next is one
tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from vkrt.errors import UnsupportedError
from vkrt.graph.symbols import RuntimeScalar, Symbol, bounded, symbols_in
from vkrt.work.limits import Count, Read, SizeValue
from vkrt.work.tensor import Tensor, device_dtype

if TYPE_CHECKING:
    from vkrt.graph.states import State
    from vkrt.work.target import Slices, Strips

FOREVER = 1 << 60

# The prefix of operators that passes make; no program has one
MADE = "vkrt."

# Conditions (tensors of one bool) and the values with which a node runs, the outermost first
Predicate = tuple[tuple[Tensor, bool], ...]


@dataclass(eq=False)
class Node:
    """One operator call."""

    op: str  # e.g. "aten.add.Tensor", or of a kernel on the host "aten::index_put.out"
    # Tensors, numbers, bools, strings, None, or lists of those, in the schema's order
    args: tuple[Any, ...]
    outs: tuple[Tensor, ...]  # the tensors it makes
    label: str = ""  # where it stands in the file, e.g. "delegate 0 node 12"
    is_host: bool = False  # a kernel outside of the delegates that runs on the host
    kernel: str = ""  # the program's name for it, where it is a kernel outside of the delegates
    # The arguments with `Symbol`s where `args` has their bounds; None without any
    formulas: tuple[Any, ...] | None = None
    # The conditions under which it runs; nobody needs its results under others
    predicate: Predicate = ()
    # What its kernel does in addition, by name. Passes set them; the operator declares which ones
    # it takes (`vkrt.ops.attributes`).
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload: "add"."""
        return self.op.split(".")[1]

    def tensors(self) -> Iterator[Tensor]:
        """The tensors among arguments and attributes, in order, also of runtime scalars."""
        if not self.attributes:
            return tensors_in(self.args)
        nodes = list(self.nested())
        made = {out for node in nodes for out in node.outs}
        values = (*self.args, *self.attributes.values(),
                  *(arg for node in nodes for arg in node.args))
        return (tensor for tensor in tensors_in(values) if tensor not in made)

    def nested(self) -> Iterator[Node]:
        """The nodes among the attributes, which run as a part of this one. Their results are for
        this node alone, or are among its results."""
        for value in self.attributes.values():
            yield from (item for item in (value if isinstance(value, tuple) else (value,))
                        if isinstance(item, Node))

    def reads(self) -> Iterator[Tensor]:
        """The tensors that must exist when the node runs, also those of the predicate."""
        if not self.predicate:
            return self.tensors()
        return chain(self.tensors(), (condition for condition, _ in self.predicate))

    def is_same(self, other: Node) -> bool:
        """Whether two nodes do the same to the same tensors."""
        return self is other or (
            (self.op, self.args, self.outs, self.predicate, self.is_host)
            == (other.op, other.args, other.outs, other.predicate, other.is_host)
            and self.attributes.keys() == other.attributes.keys()
            and all(_is_same(value, other.attributes[name])
                    for name, value in self.attributes.items())
            # `args` compares runtime scalars by their bounds alone.
            and list(self.tensors()) == list(other.tensors()))

    def with_tensors(self, others: Mapping[Tensor, Tensor]) -> Node:
        """The same node with others for some of the tensors among its arguments and attributes, not
        for those of its predicate."""
        return replace(self, args=replaced(self.args, others), attributes={
            name: replaced(value, others) for name, value in self.attributes.items()})

    def update_args(self) -> None:
        self.args = bounded(self.formulas)

    def __str__(self):
        return f"{self.op} ({self.label})" if self.label else self.op


def replaced(value: Any, others: Mapping[Tensor, Tensor]) -> Any:
    """An argument of a node, or a list of them, with some tensors replaced by others."""
    if isinstance(value, Tensor):
        return others.get(value, value)
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(item, others) for item in value)
    return value


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among arguments, in order and as often as they stand there, also in lists and of
    runtime scalars."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, RuntimeScalar):
            yield value.tensor
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, Tensor))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two attributes are equal; nodes among them are compared as nodes."""
    if isinstance(one, Node) and isinstance(other, Node):
        return one.is_same(other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return one == other


def node_of(op: str, args: Sequence[Any], outs: Sequence[Tensor], label: str = "",
            is_host: bool = False, kernel: str = "", predicate: Predicate = ()) -> Node:
    """A node whose arguments may hold symbols."""
    args = tuple(args)
    formulas = args if next(symbols_in(args), None) is not None else None
    return Node(op, bounded(args), tuple(outs), label, is_host, kernel, formulas, predicate)


def default_names(kind: str, count: int) -> tuple[str, ...]:
    """Names of inputs or outputs that have none: "input_0", .."""
    return tuple(f"{kind}_{number}" for number in range(count))


@dataclass
class Graph:
    """A method as tensors and nodes."""

    name: str  # of the method
    # One entry per argument of the method: a Tensor; a `Symbol` for an integer; a number or None
    # where the argument must be just that
    inputs: list[Any] = field(default_factory=list)
    # One entry per result: a Tensor, a number, or None
    outputs: list[Any] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # in an order that respects their dependencies
    file_arena: int = 0  # bytes of activations by the plan in the file, summed over the delegates
    # What the file needs and vkrt does not have, apart from operators, with counts
    unsupported: Counter[str] = field(default_factory=Counter)
    # Of a method with dynamic shapes: every node and symbol that the results or their sizes depend
    # on, in the order of the file. Empty where all sizes are fixed.
    chain: list[Node | Symbol] = field(default_factory=list)
    # The results that are symbols, by number; `outputs` has their bounds
    output_symbols: dict[int, Symbol] = field(default_factory=dict)
    # The numbers that decide sizes or places: elements of inputs, then counts of the data in the
    # order in which a run comes to them
    reads: tuple[SizeValue, ...] = ()
    # The numbers of `reads` at the graph's sizes; 0 for those that are left out
    values: Mapping[SizeValue, int] = field(default_factory=dict)
    # Of a method with dynamic shapes: the dimensions of inputs that change together, each as the
    # number of the input and of the dimension
    axes: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    # What it keeps from run to run; their sizes are fixed
    states: list[State] = field(default_factory=list)
    # As the file has them, see `vkrt.graph.names`; empty for a graph that is no method of a file
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    # Of a graph that passes have rewritten: for each node the number of the original node that it
    # stands for, and at the end how many original nodes there were. Empty for a graph that nothing
    # has rewritten.
    numbers: tuple[int, ...] = ()
    # Of nodes that passes have compared with their operators' declarations, the arguments as
    # schemas read them
    checked: Mapping[Node, tuple[Any, ...]] = field(default_factory=dict)
    # What the file does not say and was decided, in words for the user
    notes: list[str] = field(default_factory=list)
    # How passes have divided runs of nodes; other sizes are divided in the same way
    parts: tuple[Slices | Strips, ...] = ()
    # None: not looked for yet
    _last_use: dict[Tensor, int] | None = field(default_factory=dict)

    @property
    def is_dynamic(self) -> bool:
        """Whether calls may pass other sizes than the bounds, or values that decide sizes."""
        return bool(self.chain) and (bool(self.reads) or any(
            tensor.dynamic_dims for tensor in self.inputs if isinstance(tensor, Tensor)))

    def input_sizes(self) -> list[tuple[int, ...] | None]:
        """The sizes of each input; None for one that is not a tensor."""
        return [value.sizes if isinstance(value, Tensor) else None for value in self.inputs]

    @property
    def counts(self) -> tuple[Count, ...]:
        """The counts of the data that decide sizes, in the order in which a run comes to them."""
        return tuple(count for count in self.reads if isinstance(count, Count))

    @property
    def is_constant(self) -> bool:
        """Whether the method only returns numbers of the file, as "get_max_seq_len" does."""
        return not (self.inputs or self.nodes or self.unsupported or self.states
                    or any(isinstance(value, Tensor) for value in self.outputs))

    def finish(self) -> Graph:
        """Drops nodes nobody needs and notes who uses each tensor last."""
        self._finish_chain()
        needed = set(self.results())
        kept = []
        for node in reversed(self.nodes):
            if any(out in needed for out in node.outs):
                kept.append(node)
                needed.update(node.reads())
        self.nodes = kept[::-1]
        self._last_use = self._uses()
        return self

    def _uses(self) -> dict[Tensor, int]:
        last = {tensor: index for index, node in enumerate(self.nodes) for tensor in node.reads()}
        last.update(dict.fromkeys(self.results(), FOREVER))
        return last

    def results(self) -> list[Tensor]:
        """The tensors that must exist after the last node: outputs and new values of states."""
        return [*(t for t in self.outputs if isinstance(t, Tensor)),
                *(state.after for state in self.states)]

    def rewritten(self, nodes: Mapping[int, Node | None]) -> Graph:
        return self.reordered((self.number_of(index), node) for index, old in enumerate(self.nodes)
                              if (node := nodes.get(index, old)) is not None)

    def reordered(self, nodes: Iterable[tuple[int, Node]]) -> Graph:
        """The same method with these nodes, each with its number (`number_of`)."""
        kept = list(nodes)
        result = replace(self, nodes=[node for _, node in kept], numbers=(
            *(number for number, _ in kept), self.number_of(len(self.nodes))))
        result._last_use = None
        return result

    def number_of(self, index: int) -> int:
        """The number that a node had before passes rewrote the graph. An index below 0 or behind
        the last node stands for the method's border."""
        return self.numbers[index] if self.numbers and index >= 0 else index

    def _finish_chain(self) -> None:
        """Drops from the chain what neither results nor their sizes depend on."""
        needed: set[Any] = set(self.results())
        needed.update(self.output_symbols.values())
        kept: list[Node | Symbol] = []
        for entry in reversed(self.chain):
            if isinstance(entry, Symbol):
                if entry in needed:
                    kept.append(entry)
                    needed.update(a for a in entry.args if isinstance(a, (Symbol, Tensor)))
            elif any(out in needed for out in entry.outs):
                kept.append(entry)
                needed.update(entry.reads())
                needed.update(symbols_in(entry.formulas or ()))
        self.chain = kept[::-1]
        found = {e.args[0] for e in self.chain
                 if isinstance(e, Symbol) and e.kind == "read" and e.runtime_scalar is None}
        self.reads = (*sorted(read for read in found if isinstance(read, Read)),
                      *sorted(count for count in found if isinstance(count, Count)))

    def last_use(self, tensor: Tensor) -> int:
        """Index of the last node that reads the tensor; -1 for none, `FOREVER` for outputs and for
        new values of states."""
        if self._last_use is None:
            self._last_use = self._uses()
        return self._last_use.get(tensor, -1)

    @staticmethod
    def staging_dtype(tensor: Tensor) -> str:
        """The dtype in which the host and the device exchange a tensor: that of the device."""
        return device_dtype(tensor.host_dtype)

    def operator_counts(self) -> Counter[str]:
        return Counter(node.kernel or node.op for node in self.nodes)

    def refuse(self, missing: Counter[str], refused: Mapping[str, int]) -> None:
        """Raises UnsupportedError, which names everything at once that vkrt does not have:
        `missing` operators and the like, and what is `refused`, in words, each with counts."""
        from vkrt.graph.wording import counted, listed  # for a program that cannot run

        missing = missing + self.unsupported
        others = (f"{text} x{count}" if count > 1 else text for text, count in refused.items())
        things = counted(len(missing) + len(refused), "thing")
        raise UnsupportedError(f"method '{self.name}' needs {things} that vkrt does not have: "
                               f"{'; '.join(filter(None, (listed(missing), *others)))}")
