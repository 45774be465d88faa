"""Random modules, the same for the same number, as PyTorch runs them."""

import copy
import itertools
import random

import expressions as ex
import layer_expressions as le
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

MOST = 6000, 200000  # elements of a tensor, in small modules and in large ones
NAMES = {"torch": torch, "nn": nn, "F": F}
DTYPES = ["float32"] * 12 + ["int64"] * 3 + ["int32", "bool", "float16", "uint8", "int8"]
SIDES = (1, 2, 3, 4, 5, 6, 8, 12, 17), (1, 2, 16, 30, 32, 33, 64, 100, 257)
# What makes an expression, and how often each is chosen
MAKERS = {ex.unary: 5, ex.binary: 5, ex.compare: 1, ex.choose: 2, ex.cast: 1, ex.view: 6,
          ex.part: 4, ex.join: 3, ex.reduce: 3, ex.creation: 1, ex.sized: 2, ex.changed: 1,
          le.layer: 5, le.block: 6, le.picture: 3, le.product: 3, le.attention: 1, le.places: 2}


class Draft:
    """A module that grows by statements, each of which has been carried out."""

    def __init__(self, number):
        self.chance = random.Random(number)
        torch.manual_seed(number)
        self.module = nn.Module()
        self.layers, self.lines, self.values, self.inputs, self.read = [], [], {}, {}, set()
        self.numbers = itertools.count()
        self.dynamic = self.chance.random() < 1 / 3
        self.large = self.chance.random() < 1 / 4
        for _ in range(self.chance.choice((1, 1, 2, 2, 3))):
            name = f"x{len(self.inputs)}"
            self.inputs[name] = self.values[name] = self.any_input()
        self.initial = {}
        count = self.chance.randint(4, 18)
        for _ in range(12 * count):
            if len(self.lines) < count:
                self.grow()
        if self.chance.random() < 1 / 6:
            self.change()
        self.results = self.choose_results()

    def any_input(self):
        """Sizes that an earlier input has, or any; often 1 or a multiple of 4."""
        chance, earlier = self.chance, list(self.inputs.values())
        rank = chance.choice((0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5))
        sizes = [chance.choice(SIDES[self.large]) for _ in range(rank)]
        if earlier and chance.random() < 0.6:
            sizes = list(chance.choice(earlier).shape)
            if sizes and chance.random() < 0.3:
                sizes = sizes[1:]
            if sizes and chance.random() < 0.3:
                sizes[chance.randrange(len(sizes))] = 1
        while np.prod(sizes) > MOST[self.large] / 2:
            sizes[sizes.index(max(sizes))] = 2
        return any_tensor(sizes, getattr(torch, chance.choice(DTYPES)))

    def grow(self):
        """One more statement, if PyTorch takes what was chosen."""
        makers = self.chance.choices(list(MAKERS), MAKERS.values())
        names = list(self.values)
        x = self.chance.choice(names[-3:] if self.chance.random() < 0.7 else names)
        layers = len(self.layers)
        try:
            text = makers[0](self, x)
            value = eval(text, {**NAMES, "self": self.module, **self.values})
            found = value if isinstance(value, (tuple, list)) else [value]
            assert 0 < len(found) < 6 and all(map(self.is_good, found))
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError, KeyError,
                NotImplementedError):
            text, found = "", []
        for name, _ in self.layers[layers:]:
            if name not in words_of(text):
                delattr(self.module, name)
        self.layers[layers:] = [(name, made) for name, made in self.layers[layers:]
                                if name in words_of(text)]
        if not found:
            return
        made = [f"v{len(self.values) + i}" for i in range(len(found))]
        self.lines.append((", ".join(made) + ("," if isinstance(value, (tuple, list)) else ""),
                           text))
        self.values.update(zip(made, found))
        self.read |= {name for name in names if name in words_of(text)}

    def is_good(self, value):
        """Whether a tensor is neither too large nor has too large numbers."""
        return (isinstance(value, torch.Tensor) and 0 < value.numel() <= MOST[self.large]
                and not value.is_complex() and value.dtype != torch.float64
                and bool(torch.isfinite(value.detach().float()).all())
                and float(value.detach().float().abs().max()) < 1e4)

    def change(self):
        """A buffer that each call changes, and what is made of it."""
        x = self.chance.choice([n for n, v in self.values.items() if v.dtype == torch.float32]
                               or [""])
        if not x:
            return
        self.module.register_buffer("state", torch.randn(self.values[x].shape))
        self.layers.append(("state", f"torch.randn({list(self.values[x].shape)})"))
        self.initial["state"] = self.module.state.clone()
        text = self.chance.choice(("self.state.add_({})", "self.state.mul_(0.5)",
                                   "self.state.copy_(self.state * 0.5 + {})",
                                   "self.state.copy_({})")).format(x)
        self.lines += [("_", text), ("changed", self.chance.choice((
            "self.state * 2", "self.state.sum()", f"self.state + {x}", "torch.relu(self.state)")))]
        self.read.add(x)
        self.values["changed"] = self.values[x]

    def layer(self, text):
        """Adds a layer or a constant; returns its name."""
        name = f"m{next(self.numbers)}"
        made = eval(text, NAMES)
        if isinstance(made, torch.Tensor):
            self.module.register_buffer(name, made)
        else:
            for parameter in made.parameters():
                nn.init.normal_(parameter, std=0.4)
            for key, statistic in made.named_buffers():
                if "var" in key:
                    nn.init.uniform_(statistic, 0.5, 1.5)
                elif "mean" in key:
                    nn.init.normal_(statistic, std=0.4)
            setattr(self.module, name, made.eval())
        self.layers.append((name, text))
        return f"self.{name}"

    constant = layer

    def operand(self, x):
        """Another tensor that may be broadcast, a number or a constant."""
        sizes = list(self.values[x].shape)
        if self.chance.random() < 0.2:
            sizes = sizes[self.chance.randint(0, len(sizes)):]
            if sizes and self.chance.random() < 0.5:
                sizes[self.chance.randrange(len(sizes))] = 1
            return self.constant(f"torch.randn({sizes})")
        return self.chance.choice(list(self.values))

    def like(self, x):
        """A tensor of the same sizes, which may be the same tensor."""
        sizes = self.values[x].shape
        return self.chance.choice([n for n, v in self.values.items() if v.shape == sizes])

    def any(self, *dtypes):
        names = [n for n, v in self.values.items() if str(v.dtype)[6:] in dtypes]
        return self.chance.choice(names) if names else None

    def choose_results(self):
        """What nothing reads, and sometimes an input, a view, a number or nothing."""
        chance = self.chance
        results = [n for n in self.values if n not in self.read and n not in self.inputs][-5:]
        made = [n for n in self.values if n not in self.inputs]
        if chance.random() < 0.2:
            results.append(chance.choice([*self.values]))
        if made and chance.random() < 0.15:
            results.append(f"{chance.choice(made)}.reshape(-1)")
        if chance.random() < 0.05:
            results.append(chance.choice(("3", "None", "0.5")))
        if chance.random() < 0.1:
            results.append(f"{chance.choice([*self.values])}.shape[0]")
        if results and chance.random() < 0.03:
            results.append(results[0])
        return results

    def source(self):
        layers = "".join(f"# self.{name} = {text}\n" for name, text in self.layers)
        inputs = "".join(f"# {name}: {list(value.shape)} {str(value.dtype)[6:]}\n"
                         for name, value in self.inputs.items())
        lines = "".join(f"    {made} = {text}\n" for made, text in self.lines)
        return (f"{layers}{inputs}def forward(self, {', '.join(self.inputs)}):\n{lines}"
                f"    return {', '.join(self.results)},\n")

    def wide(self):
        """The same module in float64, and what has halves in float32."""
        return with_forward(copy.deepcopy(self.module).double(), self.source().replace(
            "float32", "float64").replace("float16", "float32"))


def words_of(text):
    return set("".join(c if c.isalnum() else " " for c in text).split())


def any_tensor(sizes, dtype):
    if dtype == torch.bool:
        return torch.rand(sizes) < 0.5
    return torch.randn(sizes).to(dtype) if dtype.is_floating_point else torch.randint(
        0, 5, sizes).to(dtype)


def with_forward(module, source):
    """The module with the forward function that the source says."""
    space = dict(NAMES)
    exec(source, space)
    module.__class__ = type("Net", (nn.Module,), {"forward": space["forward"]})
    return module.eval()
