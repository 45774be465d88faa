"""The graph of a method: its tensors and the operators on them, in order.

All delegates of the method and the kernels between them are one list of nodes. A value that one
delegate hands to the next is one tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vkrt.dataclass import dataclass, field
from vkrt.errors import UnsupportedError
from vkrt.graph.symbols import Late, Symbol, bounded, symbols_in
from vkrt.work.limits import Read
from vkrt.work.tensor import Tensor, device_dtype

if TYPE_CHECKING:
    from vkrt.graph.states import State

FOREVER = 1 << 60

# Conditions (tensors of one bool) and what they have to be for a node to run, the outermost first
Guard = tuple[tuple[Tensor, bool], ...]


@dataclass(eq=False)
class Node:
    """One operator call.

    Attributes:
        op: e.g. "aten.add.Tensor", or of a kernel on the host "aten::index_put.out".
        args: Tensors, numbers, bools, strings, None, or lists of those, in the schema's order.
        outs: the tensors it makes.
        label: where it stands in the file, e.g. "delegate 0 node 12".
        is_host: a kernel outside of the delegates that runs on the host.
        kernel: what the program calls it where it is a kernel outside of the delegates.
        formulas: the arguments with `Symbol`s where `args` has their bounds; None without any.
        guard: the conditions under which it runs; nobody needs its results under others.
    """

    op: str
    args: tuple[Any, ...]
    outs: tuple[Tensor, ...]
    label: str = ""
    is_host: bool = False
    kernel: str = ""
    formulas: tuple[Any, ...] | None = None
    guard: Guard = ()

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload: "add"."""
        return self.op.split(".")[1]

    def tensors(self) -> Iterator[Tensor]:
        """The tensors among the arguments, in order, lists flattened; also those that hold what is
        only known when kernels run."""
        for arg in self.args:
            if isinstance(arg, Tensor):
                yield arg
            elif isinstance(arg, Late):
                yield arg.tensor
            elif isinstance(arg, (list, tuple)):
                yield from (item for item in arg if isinstance(item, Tensor))

    def reads(self) -> Iterator[Tensor]:
        """The tensors that have to be there when its turn comes: those of `tensors`, and those that
        decide whether it runs."""
        yield from self.tensors()
        for condition, _ in self.guard:
            yield condition

    def settle(self) -> None:
        """Takes the values that the symbols in the formulas have now."""
        self.args = bounded(self.formulas)

    def __str__(self):
        return f"{self.op} ({self.label})" if self.label else self.op


def node_of(op: str, args: Sequence[Any], outs: Sequence[Tensor], label: str = "",
            is_host: bool = False, kernel: str = "", guard: Guard = ()) -> Node:
    """A node whose arguments may hold symbols."""
    args = tuple(args)
    formulas = args if next(symbols_in(args), None) is not None else None
    return Node(op, bounded(args), tuple(outs), label, is_host, kernel, formulas, guard)


def default_names(kind: str, count: int) -> tuple[str, ...]:
    """Names of inputs or outputs that have none: "input_0", .."""
    return tuple(f"{kind}_{number}" for number in range(count))


@dataclass
class Graph:
    """A method as tensors and nodes.

    Attributes:
        name: of the method.
        inputs: one entry per argument of the method: a Tensor; a `Symbol` for an integer; a number
            or None for what has to be that.
        outputs: one entry per result: a Tensor, a number, or None.
        nodes: in an order that respects their dependencies.
        file_arena: bytes of activations by the plan in the file, summed over the delegates.
        unsupported: what the file asks for besides operators that vkrt does not do, with counts.
        chain: of a method with dynamic shapes: every node and symbol that the results or their
            sizes depend on, in the order of the file. Empty where all sizes are fixed.
        output_symbols: the results that are symbols, by number; `outputs` has their bounds.
        reads: elements of inputs whose values decide sizes or places.
        values: what is read at the sizes that the graph has; 0 for what is left out.
        axes: of a method with dynamic shapes: the dimensions of inputs that change together, each
            as numbers of an input and of its dimension.
        states: what it keeps from run to run; their sizes are fixed.
        input_names, output_names: as the file has them, see `vkrt.graph.names`; empty for a graph
            that is no method of a file.
    """

    name: str
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    file_arena: int = 0
    unsupported: Counter[str] = field(default_factory=Counter)
    chain: list[Node | Symbol] = field(default_factory=list)
    output_symbols: dict[int, Symbol] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()
    values: Mapping[Read, int] = field(default_factory=dict)
    axes: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()
    _last_use: dict[Tensor, int] = field(default_factory=dict)

    @property
    def is_dynamic(self) -> bool:
        """Whether calls may pass other sizes than the bounds, or values that decide sizes."""
        return bool(self.chain) and (bool(self.reads) or any(
            tensor.dynamic_dims for tensor in self.inputs if isinstance(tensor, Tensor)))

    @property
    def is_constant(self) -> bool:
        """Whether the method only returns numbers that the exporter was told, such as
        "get_max_seq_len"."""
        return not (self.inputs or self.nodes or self.unsupported or self.states
                    or any(isinstance(value, Tensor) for value in self.outputs))

    def finish(self) -> Graph:
        """Drops nodes nobody needs and notes who uses each tensor last."""
        self._finish_chain()
        results = [t for t in self.outputs if isinstance(t, Tensor)]
        results += [state.after for state in self.states]
        needed = set(results)
        kept = []
        for node in reversed(self.nodes):
            if any(out in needed for out in node.outs):
                kept.append(node)
                needed.update(node.reads())
        self.nodes = kept[::-1]
        self._last_use = {}
        for index, node in enumerate(self.nodes):
            for tensor in node.reads():
                self._last_use[tensor] = index
        for tensor in results:
            self._last_use[tensor] = FOREVER
        return self

    def _finish_chain(self) -> None:
        """Drops from the chain what neither results nor their sizes depend on."""
        needed: set[Any] = {t for t in self.outputs if isinstance(t, Tensor)}
        needed.update(state.after for state in self.states)
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
                 if isinstance(e, Symbol) and e.kind == "read" and e.late is None}
        self.reads = tuple(sorted(found, key=lambda r: (r.input, r.element)))

    def last_use(self, tensor: Tensor) -> int:
        """Index of the last node that reads the tensor; -1 for none, `FOREVER` for outputs and what
        states become."""
        return self._last_use.get(tensor, -1)

    @staticmethod
    def staging_dtype(tensor: Tensor) -> str:
        """The dtype in which the host and the device exchange a tensor: 64-bit is narrowed."""
        return device_dtype(tensor.host_dtype)

    def operator_counts(self) -> Counter[str]:
        """How often each operator occurs."""
        return Counter(node.kernel or node.op for node in self.nodes)

    def refuse(self, missing: Counter[str], refused: Mapping[str, int]) -> None:
        """Raises UnsupportedError naming everything at once that vkrt does not have.

        Args:
            missing: names of operators and the like, with counts.
            refused: what else of the graph vkrt does not do, in words, with counts.
        """
        from vkrt.graph.wording import counted, listed  # for a program that cannot run

        missing = missing + self.unsupported
        others = (f"{text} x{count}" if count > 1 else text for text, count in refused.items())
        things = counted(len(missing) + len(refused), "thing")
        raise UnsupportedError(f"method '{self.name}' needs {things} that vkrt does not have: "
                               f"{'; '.join(filter(None, (listed(missing), *others)))}")
