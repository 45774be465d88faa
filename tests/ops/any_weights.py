"""Random layers of transformers whose weights have 4 or 8 bits, the same for the same seed, with
what they give in numpy."""

import math
import random

import numpy as np
from any_quantized import Quantized
from harness import normal
from samples.linear_q4 import packed, padded

from vkrt.work.tensor import Tensor

KINDS = "groups", "groups", "groups", "channels", "dynamic", "dynamic", "bytes", "float"
VOCABULARY = 29


class Layers(Quantized):
    """Layers of the kinds of `KINDS`, of floats of one precision.

    Attributes:
        kind: of the layers; None for any.
    """

    def __init__(self, *sizes: int, seed: int, dtype: str = "float32", reads_ids: bool = False):
        super().__init__(*sizes, seed=seed)
        self.x.dtype = self.x.host_dtype = "int32" if reads_ids else dtype
        self.values[self.x] = self.exact(self.input(normal(*sizes, seed=3)))
        self.dtype, self.kind = dtype, self.chance.choice((*KINDS, None))
        self.has_rounded_rows = False

    @property
    def max_error(self) -> float:
        # Another last bit of a row may make another scale, by which all of it is rounded otherwise.
        return 0.1 if self.has_rounded_rows else 1e-2 if self.dtype == "float16" else 5e-6

    def error_of(self, tensor: Tensor) -> float:
        made = next(node for node in self.nodes if tensor in node.outs)
        if "dq8ca" in made.op or tensor.dtype == "int8":
            return 1e-2  # some numbers lie halfway between two steps
        return 1e-3 if tensor.dtype == "float16" else 2e-6

    @property
    def dynamic_dims(self) -> tuple[int, ...]:
        return (1,)

    def input(self, array: np.ndarray) -> np.ndarray:
        if self.x.dtype == "int32":
            return (np.abs(array) * 1000).astype(np.int32) % VOCABULARY
        return array.astype(self.x.dtype)

    def exact(self, array: np.ndarray) -> np.ndarray:
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    def constant(self, *sizes: int, scale: float = 1.0, positive: bool = False) -> np.ndarray:
        self.seed += 1
        numbers = normal(*sizes, seed=self.seed) * scale
        return (np.abs(numbers) + scale / 4 if positive else numbers).astype(self.dtype)

    def int4(self, *sizes: int) -> np.ndarray:
        self.seed += 1
        return np.random.default_rng(self.seed).integers(-8, 8, sizes)

    def group_of(self, depth: int) -> int:
        fitting = [group for group in (32, 64, 128, 256) if depth % group == 0]
        if fitting and self.chance.random() < 0.85:
            return self.chance.choice(fitting)
        return self.chance.choice([n for n in range(1, depth + 1) if depth % n == 0])

    def embedding(self, size: int) -> Tensor:
        if self.chance.random() < 0.7:
            group = self.group_of(size)
            low_first = self.chance.random() < 0.5
            return self.node("et_vk.embedding_q4gsw.default",
                             self.constants.add(packed(self.int4(VOCABULARY, size), not low_first)),
                             self.constants.add(self.constant(VOCABULARY, size // group, scale=0.2,
                                                              positive=True)),
                             group, self.x, low_first, dtypes=[self.dtype])
        return self.node("aten.embedding.default",
                         self.constants.add(self.constant(VOCABULARY, size)), self.x, None, None,
                         None)

    def norm(self, x: Tensor) -> Tensor:
        weight = self.constants.add(self.constant(x.sizes[-1], positive=True))
        return self.node("et_vk.rms_norm.default", x, weight, 1e-5)

    def any_layer(self, x: Tensor, columns: int, kind: str, group: int, bias: bool) -> Tensor:
        depth, steps = x.sizes[-1], ()
        if kind == "dynamic":
            self.has_rounded_rows = True
            self.node("torchao.choose_qparams_affine.default", x, "ASYMMETRIC",
                      [1] * (x.rank - 1) + [depth], None, -128, 127, 1e-4, None, None, False,
                      count=2, dtypes=[self.dtype, "int8"])
            steps = self.nodes[-1].outs
        op, *others = self.reused(kind, columns, depth, group, bias, make=lambda: self.weights(
            kind, columns, depth, group, bias))
        return self.node(op, x, *steps, *others)

    def weights(self, kind: str, columns: int, depth: int, group: int, bias: bool) -> list:
        """The operator of a layer, and what it reads beside its input."""
        scale, add = 0.2 / math.sqrt(depth), self.constants.add
        if kind == "channels":
            return ["et_vk.linear_qcs4w.default",
                    add(packed(self.int4(columns, depth), high_first=True)),
                    add(self.constant(columns, scale=scale, positive=True))]
        if kind == "bytes":
            return ["aten._weight_int8pack_mm.default", add(self.numbers(columns, depth)),
                    add(self.constant(columns, scale=scale / 16, positive=True))]
        if kind == "float":
            return ["aten.linear.default", add(self.constant(columns, depth, scale=5 * scale)),
                    add(self.constant(columns)) if bias else None]
        numbers = self.int4(columns, depth)
        matrix = add(packed(numbers, step=8))
        scales = add(padded(self.constant(depth // group, columns, scale=scale, positive=True)))
        vector = add(padded(self.constant(columns, scale=0.3))) if bias else None
        if kind == "groups":
            return ["et_vk.linear_q4gsw.default", matrix, scales, group, vector]
        sums = numbers.reshape(columns, -1, group).sum(-1).T.astype(np.int32)
        return ["et_vk.linear_dq8ca_q4gsw.default", matrix, add(padded(sums, 8)), scales, group,
                vector]

    def layers(self, x: Tensor, *columns: int) -> list[Tensor]:
        """Layers that read the same, most often of one kind."""
        chance, found = self.chance, []
        kind = self.kind or chance.choice(KINDS)
        group, bias = self.group_of(x.sizes[-1]), chance.random() < 0.4
        for size in columns:
            if chance.random() < 0.1:
                kind, bias = chance.choice(KINDS), not bias
            if kind == "channels" and x.sizes[-1] % 2:
                kind = "groups"
            found.append(self.any_layer(x, size, kind, group, bias))
        return found

    def between(self, x: Tensor) -> Tensor:
        """Perhaps a function, or a view that is none."""
        if self.chance.random() < 0.3:
            return self.node(f"aten.{self.chance.choice(('relu', 'sigmoid', 'tanh'))}.default", x)
        return x

    def silu(self, x: Tensor) -> Tensor:
        factors = x, self.node("aten.sigmoid.default", x)
        return self.node("aten.mul.Tensor", *factors[::self.chance.choice((1, -1))])

    def add(self, *terms: Tensor) -> Tensor:
        return self.node("aten.add.Tensor", *terms[::self.chance.choice((1, -1))], 1)


def any_weights(seed: int, dynamic: bool = False) -> Layers:
    """Blocks of a transformer without attention: norms, layers that read the same, gates, sums; of
    one row and of many."""
    chance = random.Random(seed)
    rows, reads_ids = chance.choice((1, 1, 1, 2, 3, 9, 40, 70, 300)), chance.random() < 0.4
    width = chance.choice((32, 64, 96, 128, 192, 256, 512, 12, 20, 37))
    dtype = chance.choice(("float32", "float32", "float16"))
    images = chance.choice(((), (1,), (1,), (2,))) if not dynamic else (1,)
    if dynamic:
        rows = max(rows, 4)
    ids = (*(images or (1,)), rows)
    net = Layers(*(ids if reads_ids else (*images, rows, width)), seed=seed, dtype=dtype,
                 reads_ids=reads_ids)
    x = net.embedding(width) if reads_ids and not (width % 2) else net.x
    if reads_ids and width % 2:
        x = net.node("aten.embedding.default", net.constants.add(net.constant(VOCABULARY, width)),
                     net.x, None, None, None)
    made = [x]
    for _ in range(chance.randrange(1, 4)):
        source = net.norm(x) if chance.random() < 0.7 else x
        if chance.random() < 0.6:
            columns = chance.choice((8, 20, 32, 64, 100))
            alike = [columns if chance.random() < 0.8 else chance.choice((4, 12, 36, 33))
                     for _ in range(chance.randrange(1, 5))]
            heads = [net.between(head) for head in net.layers(source, *alike)]
            mixed = heads[0]
            for head in heads[1:]:
                if head.sizes == mixed.sizes:
                    mixed = net.node("aten.mul.Tensor", net.node("aten.tanh.default", head), mixed)
                else:
                    made.append(head)
            out, = net.layers(mixed, width)
            x = net.add(out, x) if chance.random() < 0.8 and x is not net.x or (
                x.dtype == out.dtype and chance.random() < 0.8) else out
            made.append(x)
            source = net.norm(x) if chance.random() < 0.7 else x
        if chance.random() < 0.7:
            gate, up = net.layers(source, *[chance.choice((32, 64, 96, 160, 256))] * 2)
            if not dynamic and chance.random() < 0.3:
                gate, up = (net.node("aten.view_copy.default", y, [math.prod(y.sizes[:-1]),
                                                                   y.sizes[-1]])
                            for y in (gate, up))
            factors = net.silu(gate), up
            hidden = net.node("aten.mul.Tensor", *factors[::chance.choice((1, -1))])
            out, = net.layers(hidden, width)
            if out.sizes != x.sizes:
                out = net.node("aten.view_copy.default", out, list(x.sizes))
            x = net.add(out, x) if chance.random() < 0.8 else out
            made.append(x)
    if chance.random() < 0.5:
        x, = net.layers(net.norm(x), chance.choice((5, 29, 64)))
        x = net.between(x)
    if net.last is not x:
        x = net.node("aten.mul.Scalar", x, 0.5)
    if not net.nodes:
        net.node("aten.relu.default", x)
    net.finish(made)
    return net
