"""Which operators vkrt has, each declared in one place, where it is lowered:

    @op("aten.leaky_relu.default", "self:T negative_slope:f", sizes=same, dtypes=ONE)
    def leaky_relu(cx, node, x, slope): ...

The function gets the `Lowering` in progress (vkrt/lowering/context.py), the graph's node, and the
node's arguments as the schema reads them (see schema.py): tensors are Tensors, lists are tuples,
and arguments left out are None. The node has been checked by then, its results' sizes and dtypes
too, so no shader reads or writes outside of an operand because numbers in a file contradict.

Portable kernels that only the host does are declared in `vkrt.ops.host`, in numpy.

A program uses a few of the modules here, and only those are imported. `vkrt.ops.families`, which
tools/operators.py writes, says which module declares a name. A name that it lacks imports them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

from vkrt.errors import UnsupportedError
from vkrt.graph.graph import MADE
from vkrt.graph.kernels import Kernel, anything
from vkrt.ops import families
from vkrt.ops.dtypes import Allowed, DtypeRule
from vkrt.ops.operator import Operator, SizesRule
from vkrt.ops.schema import Schema, Sizes
from vkrt.ops.sizes import together

_DECLARED: dict[str, Operator] = {}
_KERNELS: dict[str, Kernel] = {}

# Namespaces of operators of which ExecuTorch has portable kernels
WITH_KERNELS = ("aten", "dim_order_ops", "llama", "quantized_decomposed")

# Gives the operator's arguments for a kernel's
Adapter = Callable[[Sequence[Any]], Sequence[Any]]


def op(names: str, schema: str, *, sizes: SizesRule, dtypes: DtypeRule,
       kernels: str | None = None, adapted: Mapping[str, Adapter] = MappingProxyType({}),
       convert: str | None = None, further: Sequence[Allowed] | None = None,
       suits: Callable[[Sequence[Any]], bool] = anything, broadcasts: str = "",
       is_host: bool = False, **others: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares a function as the lowering of the operators of these names (see `Operator`).

    Args:
        names: one or more, with blanks between.
        kernels: portable kernels that are the same operators: the device does these outside of
            delegates too. "{}" stands for the operator's name without namespace and overload. By
            default the out variant of each operator of `WITH_KERNELS`.
        adapted: such kernels with other arguments than the operator's, each with the function that
            gives the operator's arguments.
        convert: how tensors of these kernels are brought to dtypes that the operator takes (see
            `vkrt.graph.kernels.Kernel`); by default as its dtype rule says.
        suits: for which arguments the device does those kernels; for others the host does them.
        broadcasts: see `Operator`, with blanks between; by default the first two parameters where
            `sizes` is `together`.
    """

    parameters = Schema(schema)
    repeated = (broadcasts.split() if sizes is not together
                else [parameter.name for parameter in parameters.parameters[:2]])

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            if name in _DECLARED:
                raise ValueError(f"operator {name} is declared twice")
            _DECLARED[name] = Operator(name, parameters, sizes, dtypes, further, function, is_host,
                                       broadcasts=repeated, **others)
            own = _out_variant(name) if kernels is None else kernels
            for kernel, adapter in {**dict.fromkeys(own.split(), tuple), **adapted}.items():
                kernel = kernel.format(_word(name))
                if kernel in _KERNELS:
                    raise ValueError(f"kernel {kernel} is two operators")
                _KERNELS[kernel] = Kernel(name, convert or dtypes.convert, adapter, suits,
                                           _DECLARED[name].kernel_dtypes)
        return function

    return declare


def _out_variant(name: str) -> str:
    """The kernel that writes the result of an operator to a tensor that it is given."""
    namespace, word, overload = name.split(".")
    if namespace not in WITH_KERNELS:
        return ""
    return f"{namespace}::{word}.{'out' if overload == 'default' else overload + '_out'}"


def short_lines(longest: int, place: int = 0) -> Callable[[Sequence[Any]], bool]:
    """For `suits`: no dimension of the tensor at this place among the arguments is longer."""
    def suits(args: Sequence[Any]) -> bool:
        sizes = getattr(args[place], "sizes", ()) if len(args) > place else ()
        return max(sizes, default=0) <= longest

    return suits


# Declares a function as kernels on the host. It gets the positional arguments of the program,
# without the out tensors and with arrays in the place of tensors. It returns the result, or a tuple
# of the results.
host_kernel = partial(op, kernels="", is_host=True)


@cache
def _load() -> None:
    """Imports every family of this package; importing declares its operators."""
    from pkgutil import walk_packages

    package = import_module("vkrt.ops")
    for module in walk_packages(package.__path__, "vkrt.ops."):
        import_module(module.name)


def _word(name: str) -> str:
    """A name without namespace and overload: "add" of aten.add.Tensor and of aten::add.out."""
    return name.split("::")[-1].split(".")[-2:][0]


@cache
def _modules(table: str) -> dict[str, str]:
    """The module that declares a word of one of the tables of `vkrt.ops.families`."""
    listed: Mapping[str, str] = getattr(families, table)
    return {word: module for module, words in listed.items() for word in words.split()}


def module_of(name: str, is_kernel: bool) -> str | None:
    """The module that declares a portable kernel of the device, or an operator; None where the
    tables have no such name."""
    device = _modules("DEVICE")
    module = device.get(name) or device.get(_word(name))
    return module if is_kernel else _modules("HOST").get(name, module)


def _load_for(name: str, declared: Mapping[str, Any]) -> None:
    """Imports the family that declares a name, or all families where none is known to."""
    if name in declared:
        return
    module = module_of(name, declared is _KERNELS)
    if module is not None:
        import_module(f"vkrt.ops.{module}")
    if name not in declared:
        _load()


def operator(name: str) -> Operator | None:
    """The operator of a name, or None if vkrt does not have it."""
    _load_for(name, _DECLARED)
    return _DECLARED.get(name)


def operators() -> tuple[Operator, ...]:
    """All operators vkrt has, kernels on the host among them, sorted by name."""
    _load()
    return tuple(_DECLARED[name] for name in sorted(_DECLARED))


def supported() -> tuple[str, ...]:
    """Names of the operators of programs that the device does, sorted."""
    return tuple(operator.name for operator in operators()
                 if not operator.is_host and not operator.name.startswith(MADE))


class _Kernels(Mapping[str, Kernel]):
    """Declared kernels. Looking for one imports its family; iteration and len() import them all."""

    def __getitem__(self, name: str) -> Kernel:
        _load_for(name, _KERNELS)
        return _KERNELS[name]

    def __iter__(self) -> Iterator[str]:
        _load()
        return iter(_KERNELS)

    def __len__(self) -> int:
        _load()
        return len(_KERNELS)


def kernels() -> Mapping[str, Kernel]:
    """The portable kernels that the device does as operators, by name."""
    return _Kernels()


def declaring() -> dict[str, dict[str, list[str]]]:
    """What `vkrt.ops.families` has to say: the sorted words of each module by table."""
    places: dict[str, dict[str, set[str]]] = {"DEVICE": {}, "HOST": {}}
    for name, found in [*((found.name, found) for found in operators()),
                        *((name, _DECLARED[kernel.op]) for name, kernel in _KERNELS.items())]:
        module = found.function.__module__.removeprefix("vkrt.ops.")
        places["HOST" if found.is_host else "DEVICE"].setdefault(module, set()).add(name)
    # Words that name one module
    owners = Counter(word for names in places["DEVICE"].values() for word in set(map(_word, names)))
    short = {word for word, count in owners.items() if count == 1}
    return {table: {module: sorted({_word(name) if table == "DEVICE" and _word(name) in short
                                    else name for name in names})
                    for module, names in sorted(modules.items())}
            for table, modules in places.items()}


def known(name: str) -> Operator:
    """The operator of a name.

    Raises:
        UnsupportedError: vkrt does not have it.
    """
    found = operator(name)
    if found is None:
        raise UnsupportedError(f"vkrt has no operator {name}")
    return found


def mutated(name: str) -> tuple[int, ...]:
    """Places of the arguments that an operator changes in place; none for one that vkrt lacks."""
    found = operator(name)
    return () if found is None else found.schema.mutates


def infer(name: str, args: Sequence[Any]) -> tuple[Sizes, ...]:
    """Sizes of each result of an operator, see `Operator.infer` and `known`."""
    return known(name).infer(args)
