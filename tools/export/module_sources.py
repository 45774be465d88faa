"""Random modules as source text that grows by statements, the same for the same number."""

import copy
import random
import re

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from expression_templates import TEMPLATES, fields_of

NAMES = {"torch": torch, "nn": nn, "F": F}
DTYPES = ["float32"] * 12 + ["int64"] * 3 + ["int32", "bool", "float16", "uint8", "int8"]
# Of small modules and of large ones: elements of a tensor, and sizes of inputs
MOST = 6000, 200000
SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 17), (1, 2, 16, 30, 32, 33, 64, 100, 257)


class ModuleSource:
    """A random module whose statements PyTorch has carried out.

    Attributes:
        module: its layers and constants, as PyTorch has them; `layers` is their text.
        inputs, values: the inputs, and all values by their names.
        lines: the statements.
        results: expressions of what it returns.
    """

    def __init__(self, number):
        self.chance = chance = random.Random(number)
        torch.manual_seed(number)
        self.module, self.layers = nn.Module(), {}
        self.inputs, self.values, self.lines = {}, {}, []
        self.is_dynamic, self.is_large = chance.random() < 1 / 3, chance.random() < 1 / 4
        for index in range(chance.choice((1, 1, 2, 2, 3))):
            self.inputs[f"x{index}"] = self.values[f"x{index}"] = self._input()
        count = chance.randint(4, 18)
        for _ in range(3 * count):
            if len(self.lines) < count:
                self._grow()
        self.has_state = chance.random() < 1 / 6
        if self.has_state:
            self._change_state()
        self.results = self._results()

    def _input(self):
        """A tensor of the sizes that an earlier input has, or of any."""
        chance, earlier = self.chance, list(self.inputs.values())
        rank = chance.choice((0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5))
        sizes = [chance.choice(SIZES[self.is_large]) for _ in range(rank)]
        if earlier and chance.random() < 0.6:
            sizes = list(chance.choice(earlier).shape)
            if chance.random() < 0.3:
                sizes = sizes[1:]
            if sizes and chance.random() < 0.3:
                sizes[chance.randrange(len(sizes))] = 1
        while np.prod(sizes) > MOST[self.is_large] / 2:
            sizes[sizes.index(max(sizes))] = 2
        return random_tensor(sizes, getattr(torch, chance.choice(DTYPES)))

    def _grow(self):
        """One more statement: the first one of its kind that PyTorch takes, if there is any."""
        names = list(self.values)
        x = self.chance.choice(names[-3:] if self.chance.random() < 0.7 else names)
        dtype = self.values[x].dtype
        unsuited = {"float", "int", "bool"} - {"float" if dtype.is_floating_point else
                                               "bool" if dtype == torch.bool else "int"}
        kinds = {kind: found for kind, found in TEMPLATES.items()
                 if kind.split()[-1] not in unsuited}
        (_, templates), = self.chance.choices(list(kinds.values()), [w for w, _ in kinds.values()])
        for template in self.chance.sample(templates, len(templates)):
            before = list(self.layers)
            try:
                text = re.sub(r"\$(.*?)\$", lambda found: self._layer(found[1]),
                              template.format_map(fields_of(self, x)))
                value = eval(text, {**NAMES, "self": self.module, **self.values})
                is_list = isinstance(value, (tuple, list))
                found = value if is_list else [value]
                # The exporter refuses a list of one.
                assert is_list < len(found) < 6 and all(map(self._is_good, found))
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError,
                    AttributeError, NotImplementedError):
                for name in set(self.layers) - set(before):
                    delattr(self.module, name)
                    del self.layers[name]
            else:
                made = [f"v{len(self.values) + index}" for index in range(len(found))]
                self.lines.append(f"{', '.join(made)} = {text}")
                self.values.update(zip(made, found))
                return

    def _layer(self, text):
        """Adds a layer or a constant; returns how statements name it."""
        name, made = f"m{len(self.layers)}", eval(text, NAMES)
        self.layers[name] = text
        if isinstance(made, torch.Tensor):
            self.module.register_buffer(name, made)
            return f"self.{name}"
        setattr(self.module, name, made.eval())
        for parameter in made.parameters():
            nn.init.normal_(parameter, std=0.4)
        for key, statistic in made.named_buffers():
            if "var" in key:
                nn.init.uniform_(statistic, 0.5, 1.5)
            elif "mean" in key:
                nn.init.normal_(statistic, std=0.4)
        return f"self.{name}"

    def _is_good(self, value):
        """Whether a tensor is neither too large nor has too large numbers."""
        return (isinstance(value, torch.Tensor) and 0 < value.numel() <= MOST[self.is_large]
                and not value.is_complex() and value.dtype != torch.float64
                and bool((value.detach().float().abs() < 1e4).all()))

    def _change_state(self):
        """Adds a buffer that each call changes, and what is made of it."""
        x = self.choose(lambda value: value.dtype == torch.float32)
        sizes = list(self.values[x].shape) if x else [3]
        self.layers["state"] = f"torch.randn({sizes})"
        self.module.register_buffer("state", torch.randn(sizes))
        y = x or "1.0"
        self.lines += [
            self.chance.choice((f"self.state.add_({y})", "self.state.mul_(0.5)",
                                f"self.state.copy_(self.state * 0.5 + {y})",
                                f"self.state.copy_({x or 'self.state + 1'})")),
            "changed = " + self.chance.choice(("self.state * 2", "self.state.sum()",
                                               f"self.state + {y}", "torch.relu(self.state)"))]
        self.values["changed"] = self.module.state

    def operand(self, x):
        """Another tensor, or a constant that may be broadcast."""
        chance, sizes = self.chance, list(self.values[x].shape)
        if chance.random() < 0.8:
            return chance.choice(list(self.values))
        sizes = sizes[chance.randint(0, len(sizes)):]
        if sizes and chance.random() < 0.5:
            sizes[chance.randrange(len(sizes))] = 1
        return f"$torch.randn({sizes})$"

    def choose(self, suits):
        """The name of one of the values that suit, or None."""
        names = [name for name, value in self.values.items() if suits(value)]
        return self.chance.choice(names) if names else None

    def _results(self):
        """What nothing reads, and sometimes an input, a view, a number or nothing."""
        chance, names = self.chance, list(self.values)
        read = set(re.findall(r"\w+", " ".join(line.split(" = ")[-1] for line in self.lines)))
        made = [name for name in names if name not in self.inputs]
        results = [name for name in made if name not in read][-5:]
        if chance.random() < 0.2:
            results.append(chance.choice(names))
        if made and chance.random() < 0.15:
            results.append(f"{chance.choice(made)}.reshape(-1)")
        if chance.random() < 0.05:
            results.append(chance.choice(("3", "None", "0.5")))
        if chance.random() < 0.1:
            results.append(f"{chance.choice(names)}.shape[0]")
        if chance.random() < 0.03:
            results += results[:1]
        return results or names[:1]

    def __str__(self):
        return "\n".join((
            *(f"# self.{name} = {text}" for name, text in self.layers.items()),
            *(f"# {name}: {list(x.shape)} {str(x.dtype)[6:]}" for name, x in self.inputs.items()),
            f"def forward(self, {', '.join(self.inputs)}):", *(f"    {s}" for s in self.lines),
            f"    return {', '.join(self.results)},\n"))

    def modules(self):
        """The module, and the same one in float64, with float32 in the place of float16."""
        wider = str(self).replace("float32", "float64").replace("float16", "float32")
        return (with_forward(copy.deepcopy(self.module), str(self)),
                with_forward(copy.deepcopy(self.module).double(), wider))


def random_tensor(sizes, dtype):
    if dtype.is_floating_point:
        return torch.randn(sizes).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 5, sizes).to(dtype)


def with_forward(module, source):
    """The module with the forward function that the source says."""
    space = dict(NAMES)
    exec(source, space)
    module.__class__ = type("Net", (nn.Module,), {"forward": space["forward"]})
    return module.eval()
