#!/usr/bin/env python3
"""Make the test programs of tests/models/ with control flow, and with numbers as arguments.

    python tools/export/control.py [NAME...] [--out tests/models]

branches: `torch.cond` in `torch.cond`, decided by two inputs. rounds: `map` and `scan`. views:
those that the exporter leaves out, in a program without delegates. numbers: an integer that decides
a size, numbers and None that the program was exported with, a list and a dictionary of tensors;
numbers and None among the results. Each NAME.npz has the inputs call0_in0, ... and the outputs
call0_out0, ... that eager PyTorch computes in float32, of several calls; None is left out there.

Needs the same as tools/export/models.py.
"""


import numpy as np
import torch
import torch.nn as nn
from exporting import lower, lower_portable, run_tool
from torch.export import Dim
from torch.utils import _pytree as pytree


class Branches(nn.Module):
    """A branch with weights, a cumulative sum (which the device may not have) and a condition of
    its own; what the branches read is read behind them too."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.inner = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, outer, inner, x):
        def one(x):
            return torch.cond(inner, lambda x: (self.inner(x), x.cumsum(1)),
                              lambda x: (torch.exp(x), x * 3), (x,))

        x = torch.tanh(self.first(x))
        a, b = torch.cond(outer, one, lambda x: (x - 1, torch.sin(x)), (x,))
        return self.last(a + x), b


class Rounds(nn.Module):
    """A function of every row, and a sum that is carried from row to row."""

    def forward(self, x, y):
        from torch._higher_order_ops.map import map as each
        from torch._higher_order_ops.scan import scan

        rows = each(lambda row, y: torch.tanh(row) * y, x, y)
        total, sums = scan(lambda sum_, row: (sum_ * 0.5 + row, sum_ + row), torch.zeros_like(y),
                           rows, dim=0)
        return rows, total, sums


class Views(nn.Module):
    """Views that are not arguments by themselves: in lists, as a condition, and what rounds and
    branches result in. The exporter leaves views of fixed sizes out."""

    def forward(self, x, places):
        from torch._higher_order_ops.map import map as each

        joined = torch.cat([(x + 1).view(-1), (x * 2).view(-1)])
        picked = joined[(places + 1).view(2, 1)]
        rows = each(lambda row: row.view(2, 4).sum(0).view(2, 2), (x * 2).view(3, 8))
        chosen = torch.cond((x.sum() > 0).view(()), lambda x: (x + 1).view(-1),
                            lambda x: (x * 2).view(-1), (x,))
        return joined, picked, rows, chosen


class Numbers(nn.Module):
    """Arguments of every kind."""

    def forward(self, pair, count, factor, negate, other):
        y = torch.cat(pair, 1)[:, :count] * factor
        y = -y if negate else y
        y = y if other is None else y + other["x"]
        return [y, None], {"sum": y.sum(1)}, count + 1, 2.5, True


def random_calls(*sizes):
    return tuple(torch.randn(*size) for size in sizes)


def branch_calls():
    return [(torch.tensor(outer), torch.tensor(inner), torch.randn(3, 6))
            for outer in (True, False) for inner in (True, False)]


def number_calls():
    return [([torch.randn(2, 3), torch.randn(2, 4)], count, 1.5, True, None)
            for count in (5, 2, 6)]


# name: module, calls, dynamic shapes
PROGRAMS = {
    "branches": (Branches, branch_calls, None),
    "rounds": (Rounds, lambda: [random_calls((4, 2, 5), (2, 5)) for _ in range(2)], None),
    "views": (Views, lambda: [(torch.randn(2, 3, 4) + shift, torch.tensor([3, 40]))
                              for shift in (1, -1)], None),
    "numbers": (Numbers, number_calls, ([None, None], Dim.DYNAMIC, None, None, None)),
}


def arrays_of_call(number, inputs, outputs):
    """The tensors and numbers of a call; None is left out."""
    flat = {"in": pytree.tree_leaves(inputs), "out": pytree.tree_leaves(outputs)}
    return {f"call{number}_{kind}{i}": np.asarray(value.detach() if isinstance(value, torch.Tensor)
                                                  else value)
            for kind, values in flat.items() for i, value in enumerate(values)
            if value is not None}


def make(name):
    """The program's bytes and its arrays."""
    make_module, make_calls, dynamic_shapes = PROGRAMS[name]
    module, calls, arrays = make_module().eval(), make_calls(), {}
    for number, inputs in enumerate(calls):
        with torch.no_grad():
            arrays |= arrays_of_call(number, inputs, module(*inputs))
    make_program = lower_portable if name == "views" else lower
    return make_program(module, calls[0], dynamic_shapes=dynamic_shapes), arrays


if __name__ == "__main__":
    run_tool("Make the test programs with control flow and numbers.", PROGRAMS,
             make, "tests/models")
