"""Random attention written out, the same for the same seed, with what it gives in numpy: heads in
any order of dimensions beside tables and masks of any rank."""

import math
import random

import numpy as np
from any_weights import Layers
from harness import normal

from vkrt.work.tensor import Tensor


class Heads(Layers):
    """Blocks of attention of `heads` heads, some of which share keys and values."""

    def __init__(self, *sizes: int, seed: int, dtype: str, heads: int, shared: int, size: int):
        super().__init__(*sizes, seed=seed, dtype=dtype)
        self.heads, self.shared, self.size = heads, shared, size
        self.batch, self.rows = sizes[:2]

    @property
    def max_error(self) -> float:
        return max(super().max_error, 2e-5)

    @property
    def dynamic_dims(self) -> tuple[int, ...]:
        return ()

    def error_of(self, tensor: Tensor) -> float:
        return max(super().error_of(tensor), 5e-6)

    def view(self, x: Tensor, *sizes: int) -> Tensor:
        return self.node("aten.view_copy.default", x, list(sizes))

    def permuted(self, x: Tensor, *order: int) -> Tensor:
        return self.node("aten.permute_copy.default", x, list(order))

    def table(self, dim: int, rank: int, width: int, waves: np.ndarray) -> Tensor:
        """Numbers for each row, which is dimension `dim` of `rank`, perhaps without dimensions of
        size 1 in front; a constant, or computed."""
        sizes = [1] * rank
        sizes[dim], sizes[-1] = self.rows, width
        first = self.chance.randrange(dim + 1)
        table = self.constants.add(waves.reshape(sizes[first:]).astype(self.dtype))
        if self.chance.random() < 0.6:
            return table
        return self.node("aten.mul.Tensor", table, self.node("aten.sigmoid.default", table))

    def turned(self, x: Tensor, dim: int) -> Tensor:
        """Halves or all of the last dimension turned by angles of the rows."""
        half = self.size // 2
        angles = normal(self.rows, half, seed=self.seed)
        cos, sin = (self.table(dim, x.rank, half, wave(angles)) for wave in (np.cos, np.sin))
        first, second = (self.node("aten.slice_copy.Tensor", x, x.rank - 1, start, start + half, 1)
                         for start in (0, half))

        def product(one: Tensor, other: Tensor) -> Tensor:
            return self.node("aten.mul.Tensor", *(one, other)[::self.chance.choice((1, -1))])

        parts = [self.node("aten.add.Tensor", product(first, cos), product(second, sin), -1),
                 self.node("aten.add.Tensor", product(second, cos), product(first, sin), 1)]
        return self.node("aten.cat.default", parts, x.rank - 1)

    def split(self, x: Tensor, heads: int, turns: bool) -> Tensor:
        """[B, T, heads * D] as [B, heads, T, D], turned before or behind that."""
        x = self.view(x, self.batch, self.rows, heads, self.size)
        before = self.chance.random() < 0.5
        if turns and before:
            x = self.turned(x, 1)
        x = self.permuted(x, 0, 2, 1, 3)
        return self.turned(x, 2) if turns and not before else x

    def repeated(self, x: Tensor) -> Tensor:
        """Keys or values for each head."""
        times = self.heads // self.shared
        if times == 1:
            return x
        x = self.node("aten.unsqueeze_copy.default", x, 2)
        sizes = [self.batch, self.shared, times, self.rows, self.size]
        return self.view(self.node("aten.expand_copy.default", x, sizes), self.batch, self.heads,
                         self.rows, self.size)

    def attend(self, x: Tensor) -> Tensor:
        chance, rows = self.chance, self.rows
        counts = [self.heads, self.shared, self.shared]
        turns = chance.random() < 0.8
        q, k, v = (self.split(y, count, turns and number < 2) for number, (y, count) in enumerate(
            zip(self.layers(x, *(n * self.size for n in counts)), counts, strict=True)))
        k, v, flat = self.repeated(k), self.repeated(v), (self.batch * self.heads, rows)
        turned = (self.permuted(self.view(k, *flat, self.size), 0, 2, 1) if chance.random() < 0.5
                  else self.view(self.permuted(k, 0, 1, 3, 2), flat[0], self.size, rows))
        scores = self.node("aten.bmm.default", self.view(q, *flat, self.size), turned)
        scores = self.node("aten.mul.Scalar", scores, 1 / math.sqrt(self.size))
        if chance.random() < 0.7:
            scores = self.view(scores, self.batch, self.heads, rows, rows)
            mask = np.where(np.tri(rows), 0, chance.choice((-30000.0, -50.0)))
            sizes = (1, 1, rows, rows)[chance.randrange(3):]
            scores = self.node("aten.add.Tensor", scores, self.constants.add(
                mask.reshape(sizes).astype(self.dtype)), 1)
        weights = self.node("aten._softmax.default", scores, -1, False)
        mixed = self.node("aten.bmm.default", self.view(weights, *flat, rows),
                          self.view(v, *flat, self.size))
        mixed = self.view(mixed, self.batch, self.heads, rows, self.size)
        return self.view(self.permuted(mixed, 0, 2, 1, 3), self.batch, rows,
                         self.heads * self.size)


def any_heads(seed: int, _dynamic: bool = False) -> Heads:
    """One or two blocks of attention; never with dynamic sizes."""
    chance = random.Random(seed)
    heads = chance.choice((1, 2, 3, 4))
    shared = chance.choice([n for n in range(1, heads + 1) if heads % n == 0])
    rows, width = chance.choice((1, 1, 2, 5, 9, 17, 40)), chance.choice((24, 32))
    sizes = chance.choice((1, 1, 2)), rows, width
    net = Heads(*sizes, seed=seed, dtype=chance.choice(("float32", "float32", "float16")),
                heads=heads, shared=shared, size=chance.choice((4, 6, 8, 10, 16)))
    x = net.x
    made = []
    for _ in range(chance.randrange(1, 3)):
        source = net.norm(x) if chance.random() < 0.7 else x
        out, = net.layers(net.attend(source), width)
        x = net.add(out, x)
        made.append(x)
    net.finish(made)
    return net
