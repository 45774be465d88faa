"""Random networks of quantized numbers, the same for the same seed, with what they give in numpy.

Scales and zeros are those of the numbers that a network makes of one input, as observers of
exporters choose them.
"""

import math
import random

import numpy as np
from harness import normal
from networks import Network
from quantized_in_numpy import evaluate

from vkrt.passes.fuse_requantization import DEQUANTIZE, QUANTIZE
from vkrt.work.tensor import Tensor

# Numbers after which a node is still exact
EXACT = ("relu", "hardtanh", "clamp")
ROUNDED = ("sigmoid", "hardswish", "tanh")


class Quantized(Network):
    """A network whose values for one input are known.

    Attributes:
        values: of each tensor, in numpy.
        steps: scale and zero of quantized tensors.
        real: the dtype of numbers that are dequantized.
        is_exact: whether all of it is exact in fp32.
    """

    def __init__(self, *sizes: int, seed: int = 0):
        super().__init__(*sizes, seed=seed)
        self.chance = random.Random(seed)
        self.values = {self.x: normal(*sizes, seed=3)}
        self.real = "float32"
        self.made: dict[tuple, list] = {}
        self.steps: dict[Tensor, tuple[float, int]] = {}
        self.is_exact = True

    def node(self, op: str, *args, count: int = 1, dtypes=()) -> Tensor:
        self.last = self.nodes.add(op, *self.operands(args, constants=False), count=count,
                                   dtypes=dtypes)
        evaluate(self.nodes[-1:], self.constants.data, self.values)
        return self.last

    @property
    def max_error(self) -> float:
        """The relative L2 error that results may have: none but that of a rounding, or what some
        steps of quantization make."""
        return 1e-6 if self.is_exact else 3e-2

    def error_of(self, tensor: Tensor) -> float:
        """The same of one node's result, if what it reads is known."""
        return {"float16": 1e-3, "float32": 1e-6}.get(tensor.dtype, 0.0)

    def values_for(self, array: np.ndarray) -> dict[Tensor, np.ndarray]:
        """All values for an input."""
        values = {self.x: self.exact(array)}
        evaluate(self.nodes, self.constants.data, values)
        return values

    def each(self, array: np.ndarray, found: dict[Tensor, np.ndarray]
             ) -> dict[Tensor, np.ndarray]:
        """What each node gives, if those before gave what was found."""
        before = {self.x: self.exact(array)} | {
            tensor: self.exact(value) for tensor, value in found.items()}
        values = {}
        for node in self.nodes:
            made = dict(before)
            evaluate([node], self.constants.data, made)
            values |= {out: made[out] for out in node.outs}
        return values

    @property
    def dynamic_dims(self) -> tuple[int, ...]:
        """The dimensions of the input that may be smaller: the sides of images, or the rows."""
        return (2, 3) if self.x.rank == 4 else (self.x.rank - 2,)

    def input(self, array: np.ndarray) -> np.ndarray:
        """Normally distributed numbers as an input."""
        return array

    def exact(self, array: np.ndarray) -> np.ndarray:
        """An input in the precision of what is computed in numpy."""
        return array

    def step_for(self, numbers: np.ndarray) -> tuple[float, int]:
        """A scale and a zero for such numbers, of which some may be beyond the range."""
        numbers = numbers * self.chance.choice((1, 1, 0.8, 1.5))
        low, high = min(float(numbers.min(initial=0)), 0), max(float(numbers.max(initial=0)), 0)
        scale = max((high - low) / 255, 1e-4)
        return scale, int(np.clip(-128 - round(low / scale), -128, 127))

    def quantize(self, x: Tensor, step: tuple[float, int] | None = None) -> Tensor:
        scale, zero = step or self.step_for(self.values[x])
        made = self.node(QUANTIZE, x, scale, zero, -128, 127, None, dtypes=["int8"])
        self.steps[made] = scale, zero
        return made

    def dequantize(self, x: Tensor) -> Tensor:
        return self.node(DEQUANTIZE, x, *self.steps[x], -128, 127, None, None, dtypes=[self.real])

    def begin(self) -> Tensor:
        """The input, quantized."""
        if self.chance.random() < 0.2:
            self.real, self.is_exact = "float16", False
        return self.quantize(self.x)

    def reused(self, *key, make) -> list:
        """What `make` gives, or, sometimes, what it gave for the same key: layers that share their
        weights."""
        if key not in self.made or self.chance.random() < 0.7:
            self.made[key] = make()
        return self.made[key]

    def numbers(self, *sizes: int) -> np.ndarray:
        self.seed += 1
        return np.random.default_rng(self.seed).integers(-127, 128, sizes).astype(np.int8)

    def padded(self, array: np.ndarray, always: bool = False) -> Tensor:
        """A constant, whose last dimension may be padded to whole texels, as exporters do it."""
        if always or self.chance.random() < 0.7:
            array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, -array.shape[-1] % 4)])
        return self.constants.add(array)

    def ends(self, rows: np.ndarray) -> list[Tensor | None]:
        """Sums, scales and a bias for the rows of a weight."""
        channels, spread = len(rows), 0.02 / math.sqrt(rows[0].size)
        self.seed += 2
        scales = np.abs(normal(channels, seed=self.seed)) * spread + spread / 2
        bias = normal(channels, seed=self.seed - 1, scale=0.3)
        sums = rows.reshape(channels, -1).sum(1, dtype=np.int32)
        return [self.padded(sums), self.padded(scales.astype(np.float32)),
                self.padded(bias) if self.chance.random() < 0.7 else None]

    def product(self, op: str, x: Tensor, matrix: Tensor, ends: list, *others) -> Tensor:
        """A node that multiplies quantized numbers. The scale of its result fits what it gives."""
        sums, scales, bias = ends
        before = [x, *self.steps[x], matrix, sums, scales]
        # What it gives with steps so small that nothing is rounded away is not to be had: a wide
        # range is, and then a range that fits.
        wide = 8.0 / 127, 0
        self.node(op, *before, *wide, bias, *others)
        rough = (self.values.pop(self.last).astype(np.float32) * np.float32(wide[0]))
        self.nodes.pop()
        step = self.step_for(rough)
        made = self.node(op, *before, *step, bias, *others)
        self.steps[made] = step
        return made

    def convolve(self, x: Tensor) -> Tensor:
        """A convolution of any kind."""
        chance, inputs = self.chance, x.sizes[1]
        kind = chance.choice(("general", "general", "pointwise", "depthwise", "depthwise", "groups",
                              "transposed"))
        kernel = [chance.choice((1, 2, 3, 3, 5)) for _ in range(2)]
        stride = [chance.choice((1, 1, 1, 2)) for _ in range(2)]
        dilation = [chance.choice((1, 1, 1, 2)) for _ in range(2)]
        padding = [chance.randrange(0, dil * (size - 1) // 2 + 2)
                   for size, dil in zip(kernel, dilation, strict=True)]
        outputs, groups = chance.choice((3, 4, 7, 8, 12, 16, 20, 32, 33, 100)), 1
        if kind == "pointwise":
            kernel, dilation = [1, 1], [1, 1]
            if chance.random() < 0.8:
                stride, padding = [1, 1], [0, 0]
        elif kind == "depthwise":
            groups = outputs = inputs
        elif kind == "groups":
            groups = chance.choice([n for n in range(1, inputs + 1) if inputs % n == 0])
            outputs = groups * chance.choice((1, 2, 3, 4, 8))
            outputs = outputs if outputs <= 64 else groups
        sides = x.sizes[2:]
        spans = [dil * (size - 1) + 1 for size, dil in zip(kernel, dilation, strict=True)]
        if kind == "transposed" and max(sides) > 24 or any(
                span > side + 2 * pad for span, side, pad in zip(spans, sides, padding,
                                                                 strict=True)):
            kind, kernel, stride, padding, dilation, groups = (
                "pointwise", [1, 1], [1, 1], [0, 0], [1, 1], 1)
        act = chance.choice(("none", "relu"))
        extra = []
        if kind == "transposed":
            padding = [min(pad, span - 1) for pad, span in zip(padding, spans, strict=True)]
            extra = [[chance.randrange(step) for step in stride]]
            if any((side - 1) * step - 2 * pad + span < 1 for side, step, pad, span in zip(
                    sides, stride, padding, spans, strict=True)):
                padding = [0, 0]
        def make() -> list:
            rows = self.numbers(outputs, inputs // groups, *kernel)
            matrix = (rows[:, 0].transpose(1, 2, 0) if kind == "depthwise" else
                      rows.transpose(0, 2, 3, 1).reshape(outputs, -1))
            return [self.padded(matrix), self.ends(rows)]

        suffix = {"depthwise": "_dw", "transposed": "_transposed"}.get(kind, "")
        if kind == "pointwise" and stride == [1, 1] and padding == [0, 0] and chance.random() < 0.7:
            suffix = "_pw"
        weight = self.reused(suffix == "_dw", outputs, inputs, groups, *kernel, make=make)
        return self.product(f"et_vk.q8ta_conv2d{suffix}.default", x, *weight, kernel, stride,
                            padding, *extra, dilation, groups, act)

    def layer_q8(self, x: Tensor, columns: int) -> Tensor:
        def make() -> list:
            rows = self.numbers(columns, x.sizes[-1])
            return [self.constants.add(rows), self.ends(rows)]

        row = math.prod(x.sizes[:-1]) == 1
        op = "q8ta_linear_gemv" if row and self.chance.random() < 0.5 else "q8ta_linear"
        return self.product(f"et_vk.{op}.default", x,
                            *self.reused(columns, x.sizes[-1], make=make),
                            self.chance.choice(("none", "relu")))

    def layer_of_floats(self, x: Tensor, columns: int) -> Tensor:
        """Floats, which are quantized on their way in."""
        rows = self.numbers(columns, x.sizes[-1])
        sums, scales, bias = self.ends(rows)
        return self.node("et_vk.linear_q8ta_q8csw.default", x, *self.step_for(self.values[x]),
                         self.constants.add(rows), sums, scales, bias)

    def convolve_floats(self, x: Tensor) -> Tensor:
        """A convolution of floats, which may be quantized on their way in."""
        outputs, inputs, stride = self.chance.choice((4, 7, 16)), x.sizes[1], [1, 2]
        window = [3, 3], stride, [1, 1], [1, 1]
        if self.chance.random() < 0.5:
            rows = self.numbers(outputs, inputs, 3, 3)
            sums, scales, bias = self.ends(rows)
            matrix = self.padded(rows.transpose(0, 2, 3, 1).reshape(outputs, -1))
            return self.node("et_vk.conv2d_q8ta_q8csw.default", x, *self.step_for(self.values[x]),
                             matrix, sums, scales, bias, *window, 1)
        self.is_exact = False
        weight, vector = (self.constants.add(normal(*sizes, seed=self.seed, scale=0.2).astype(
            self.real)) for sizes in ((outputs, inputs, 3, 3), (outputs,)))
        return self.node("aten.convolution.default", x, weight, vector, *window[1:], False, [0, 0],
                         1)

    def unsigned(self, x: Tensor) -> Tensor:
        """Floats as numbers from 0 to 255, and back."""
        scale, zero = self.step_for(self.values[x])
        made = self.node(QUANTIZE, x, scale, zero + 128, 0, 255, None, dtypes=["uint8"])
        return self.node(DEQUANTIZE, made, scale, zero + 128, 0, 255, None, None,
                         dtypes=[self.real])

    def activate(self, x: Tensor) -> Tensor:
        """A function of floats; most often one that is exact."""
        name = self.chance.choice((*EXACT, *EXACT, *ROUNDED))
        self.is_exact &= name in EXACT
        bounds = {"hardtanh": (0, 6.0), "clamp": (-0.5, self.chance.choice((1.25, 3)))}
        return self.node(f"aten.{name}.default", x, *bounds.get(name, ()))

    def between(self, x: Tensor, change) -> Tensor:
        """What becomes of quantized numbers as floats, quantized again."""
        return self.quantize(change(self.dequantize(x)))

    def finish(self, made: list[Tensor]) -> None:
        """Ends with floats or quantized numbers; some results of others are results too."""
        last = self.nodes[-1].outs[0]
        if last.dtype == "int8" and self.chance.random() < 0.6:
            last = self.dequantize(last)
        read = {tensor for node in self.nodes for tensor in node.tensors()}
        self.more = [x for x in dict.fromkeys(made) if x not in (self.x, self.nodes[-1].outs[0])
                     and (x not in read or self.chance.random() < 0.1)]


def _image_step(net: Quantized, x: Tensor, made: list[Tensor], dynamic: bool) -> Tensor:
    """One more quantized image, made of the last one and others."""
    chance = net.chance
    same = [y for y in made if y.dtype == "int8" and y.sizes == x.sizes]
    joinable = [y for y in made if y.dtype == "int8" and y.sizes[2:] == x.sizes[2:]
                and y.sizes[0] == x.sizes[0]]
    kind = chance.randrange(20)
    if kind < 6:
        return net.convolve(x)
    if kind == 6:
        return net.between(x, net.activate)
    if kind == 7 and min(x.sizes[2:]) > 3:
        window = ([2, 2], [2, 2], [0, 0]) if chance.random() < 0.5 else ([3, 3], [2, 1], [1, 1])
        scale = net.steps[x] if chance.random() < 0.7 else None
        pooled = net.node("aten.max_pool2d.default", net.dequantize(x), *window, [1, 1], False)
        return net.quantize(pooled, scale)
    if kind == 8:
        other = net.dequantize(chance.choice(joinable))
        return net.between(x, lambda real: net.node("aten.cat.default", [real, other], 1))
    if kind == 9:
        step = net.steps[x]
        alike = [y for y in joinable if net.steps[y] == step]
        parts = [x, chance.choice(alike), x][:chance.choice((2, 3))]
        joined = net.node("aten.cat.default", parts, 1)
        net.steps[joined] = step
        return joined
    if kind in (10, 11):
        other = chance.choice(same)
        total = net.dequantize(x), net.dequantize(other)
        step = net.step_for(net.values[total[0]] + net.values[total[1]])
        if chance.random() < 0.3:
            return net.quantize(net.node("aten.add.Tensor", *total, 1), step)
        made_ = net.node("et_vk.q8ta_add.default", x, other, *net.steps[x], *net.steps[other],
                         *step, chance.choice((1, 1, 1.0, 2, -0.5)))
        net.steps[made_] = step
        return made_
    if kind == 12:
        step = net.step_for(np.maximum(net.values[net.dequantize(x)], 0))
        made_ = net.node("et_vk.q8ta_relu.default", x, *net.steps[x], *step)
        net.steps[made_] = step
        return made_
    if kind == 13 and x.sizes[1] % 4 == 0 and max(x.sizes[2:]) < 30:
        scale, zero = net.steps[x] if chance.random() < 0.5 else net.step_for(
            net.values[net.dequantize(x)])
        made_ = net.node("et_vk.q8ta_pixel_shuffle.default", x, *net.steps[x], 1 / scale, zero, 2)
        net.steps[made_] = scale, zero
        return made_
    if kind == 14 and max(x.sizes[2:]) < 30:
        return net.between(x, lambda real: net.node("aten.upsample_nearest2d.vec", real, None,
                                                    [2.0, 2.0]))
    if kind == 15 and x.sizes[1] > 2:
        first = chance.randrange(x.sizes[1] - 1)
        part = net.node("aten.slice_copy.Tensor", x, 1, first,
                        chance.randrange(first + 1, x.sizes[1] + 1), 1)
        net.steps[part] = net.steps[x]
        return part
    if kind == 16 and not dynamic:
        net.is_exact = False
        return net.between(x, lambda real: net.node("aten.mul.Tensor", real, net.node(
            "aten.sigmoid.default", net.node("aten.mean.dim", real, [2, 3], True, None))))
    if kind == 17 and not dynamic:
        means = net.between(x, lambda real: net.node("aten.mean.dim", real, [2, 3], True, None))
        net.is_exact = False
        step = net.step_for(net.values[x] * np.float32(net.steps[x][0]))
        made_ = net.node("et_vk.q8ta_add.default", *(x, means), *net.steps[x], *net.steps[means],
                         *step, 1)
        net.steps[made_] = step
        return made_
    if kind == 18:
        return net.between(x, net.convolve_floats)
    if kind == 19:
        return net.between(x, net.unsigned)
    return net.convolve(x)


def any_quantized_images(seed: int, dynamic: bool = False) -> Quantized:
    """Quantized convolutions of every kind, and what stands between them; odd sides. Without
    dynamic sizes, layers of the last image may follow."""
    chance = random.Random(seed)
    net = Quantized(chance.choice((1, 1, 2)), chance.choice((1, 3, 4, 8, 16)),
                    chance.randrange(7, 26), chance.randrange(5, 24), seed=seed)
    x = net.begin()
    made = [x]
    for _ in range(chance.randrange(2, 9)):
        x = _image_step(net, x, made, dynamic)
        made.append(x)
    if not dynamic and chance.random() < 0.3:
        flat = net.node("aten.view_copy.default", x, [x.sizes[0], math.prod(x.sizes[1:])])
        net.steps[flat] = net.steps[x]
        made.append(net.layer_q8(flat, chance.choice((3, 10, 33))))
    net.finish(made)
    return net


def any_quantized_rows(seed: int, dynamic: bool = False) -> Quantized:
    """Quantized linear layers of one row and of many, and what stands between them."""
    chance = random.Random(seed)
    rows = chance.choice((1, 1, 2, 7, 33, 70, 300))
    depth = chance.choice((6, 16, 37, 64, 320))
    net = Quantized(*chance.choice(((), (), (2,))), rows, depth, seed=seed)
    x = net.begin()
    made = [x]
    for _ in range(chance.randrange(2, 7)):
        columns, kind = chance.choice((3, 8, 16, 30, 48, 64, 130)), chance.randrange(9)
        same = [y for y in made if y.sizes == x.sizes and y.dtype == "int8"]
        step = net.steps[x]
        if kind == 0:
            x = net.between(x, lambda real, n=columns: net.layer_of_floats(real, n))
        elif kind == 1:
            x = net.between(x, net.activate)
        elif kind == 2:
            total = [net.dequantize(y) for y in (x, chance.choice(same))]
            x = net.quantize(net.node("aten.add.Tensor", *total, 1))
        elif kind == 3 and not dynamic:
            turned = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
            x = net.node("aten.permute_copy.default", x, turned)
            net.steps[x] = step
        elif kind == 4 and not dynamic:
            sizes = [math.prod(x.sizes[:-1]), 1, x.sizes[-1]] if x.rank == 2 else [
                math.prod(x.sizes[:-1]), x.sizes[-1]]
            x = net.node("aten.view_copy.default", x, sizes)
            net.steps[x] = step
        else:
            x = net.layer_q8(x, columns)
        made.append(x)
    net.finish(made)
    return net
