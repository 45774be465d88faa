"""A network that knows what its tensors hold, and refuses nodes of which nothing could be said."""

import random
from typing import Any

import numpy as np
from graph_maker import new_node
from harness import doubled, normal
from in_numpy import array_of, results_in_numpy, rounded
from networks import Network
from support import relative_l2

from vkrt.errors import FormatError, UnsupportedError
from vkrt.graph.graph import replaced
from vkrt.graph.symbols import bounded
from vkrt.work.tensor import Tensor

# The largest number of a tensor
LARGEST = 1e3
# How much the rounding of float32 may change a result in all (a relative L2 error)
MAX_CHANGE = 1e-6


class CheckedNetwork(Network):
    """Nodes are done when they are added, in float64, twice: the second time the elements of each
    result are as wrong as rounding to float32 may make them. A node whose results differ too much
    is refused: what is made of it would say nothing about kernels.

    Attributes:
        of_dtype: the tensors made so far that nodes may read, by dtype.
        chance: decides what is made.
        columns: how many a product or a convolution may have.
        most: elements of a tensor at most.
    """

    def __init__(self, *sizes: int, seed: int, columns: tuple[int, ...], most: int):
        super().__init__(*sizes, seed=seed)
        self.columns, self.most = columns, most
        self.chance = random.Random(seed)
        self.noise = np.random.default_rng(seed)
        held = doubled(normal(*sizes, seed=3))
        self.values = {self.x: (held, rounded(held, self.noise))}
        self.of_dtype: dict[str, list[Tensor]] = {"float32": [self.x], "bool": [], "int32": []}

    def add(self, op: str, *args: Any, dtypes: tuple[str, ...] = ()) -> Tensor | None:
        """Adds a node, unless its arguments do not fit or its results would be too large or too
        uncertain; its first result, or None."""
        args = tuple(self.operands([self._view(arg, args) for arg in args]))
        try:
            node = new_node(op, *args, dtypes=dtypes)
        except (FormatError, UnsupportedError):
            return None
        if not 0 < node.outs[0].numel <= self.most or node.outs[0].rank > 6:
            return None
        for tensor in node.tensors():
            self._hold(tensor)
        exact, other = (results_in_numpy(op, replaced(bounded(args), {
            tensor: self.values[tensor][which] for tensor in node.tensors()})) for which in (0, 1))
        made = {}
        for out, one, two in zip(node.outs, exact, other, strict=False):
            assert one.shape == out.sizes, f"{node}: {out.sizes} and, in numpy, {one.shape}"
            made[out] = one, rounded(two, self.noise)
            if one.dtype.kind == "f" and out.numel and not (
                    np.abs(one).max() < LARGEST and relative_l2(two, one) < MAX_CHANGE):
                return None
            if one.dtype.kind != "f" and (one != two).any():
                return None
        self.values.update(made)
        self.last = self.nodes.put(node)
        for out in made:
            if out.numel and out.dtype in self.of_dtype:
                self.of_dtype[out.dtype].append(out)
        return self.last

    def _view(self, arg: Any, args: tuple[Any, ...]) -> Any:
        """An argument; where nodes repeat operands, perhaps a view of another one of as many
        elements."""
        if self.repeats is None or not isinstance(arg, Tensor) or self.repeats.random() > 0.1:
            return arg
        alike = [other for other in args if isinstance(other, Tensor) and other is not arg
                 and (other.numel, other.dtype) == (arg.numel, arg.dtype)]
        if not alike:
            return arg
        other = self.repeats.choice(alike)
        if other.constant is not None:
            return arg
        return self.add("aten.view_copy.default", other, list(arg.sizes)) or arg

    def held(self, tensor: Tensor) -> np.ndarray:
        """What a tensor holds, floats in float64."""
        self._hold(tensor)
        return self.values[tensor][0]

    def one(self, dtype: str = "float32") -> Tensor | None:
        """Any tensor, more often one of the last."""
        found = self.of_dtype[dtype]
        return self.chance.choice(self.chance.choice((found, found[-3:]))) if found else None

    def like(self, *sizes: int) -> Tensor:
        """A tensor that has these sizes, or a constant."""
        found = [x for x in self.of_dtype["float32"] if x.sizes == sizes]
        return self.chance.choice(found) if found and self.chance.random() < 0.7 else (
            self.weight(*sizes))

    def whole(self, high: int, *sizes: int) -> Tensor:
        """Constant whole numbers in [0, high)."""
        return self.constants.add(self.noise.integers(0, high, sizes).astype(np.int32))

    def _hold(self, tensor: Tensor) -> None:
        """Notes what a constant holds."""
        if tensor not in self.values:
            self.values[tensor] = (doubled(array_of(tensor, self.constants.data)),) * 2
