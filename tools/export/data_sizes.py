#!/usr/bin/env python3
"""Make the programs of tests/models/cases/ in which the data decide sizes, or which rows are read.

    python tools/export/data_sizes.py [NAME...] [--out tests/models/cases] [--list]

As those of tools/export/cases.py. Most NAME.npz have further calls, in which nothing is counted,
or all of it: inputs call0_in0, ... and outputs call0_out0, ...
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import Module, arrays_of, export, run_eager, run_tool


class Experts(nn.Module):
    """Two of five experts for each token, in the ways in which models write that: the weights of
    the chosen ones gathered, all experts with weights that are one_hot's, tokens sorted by expert
    and index_add."""

    def __init__(self, count=5, size=12, wide=20):
        super().__init__()
        self.count = count
        self.gate = nn.Linear(size, count, bias=False)
        self.up = nn.Parameter(0.3 * torch.randn(count, size, wide))
        self.down = nn.Parameter(0.3 * torch.randn(count, wide, size))

    def forward(self, x):
        share, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, -1)
        share = share / share.sum(-1, keepdim=True)
        inner = F.silu(torch.einsum("td,tkdh->tkh", x, self.up[chosen]))
        gathered = (torch.einsum("tkh,tkhd->tkd", inner, self.down[chosen]) * share[..., None])

        of_expert = (F.one_hot(chosen, self.count).to(x.dtype) * share[..., None]).sum(1)
        dense = sum((F.silu(x @ self.up[k]) @ self.down[k]) * of_expert[:, k:k + 1]
                    for k in range(self.count))

        order = torch.argsort(chosen.flatten(), stable=True)
        token, expert = order // 2, chosen.flatten()[order]
        inner = F.silu(torch.bmm(x[token][:, None], self.up[expert]))
        made = torch.bmm(inner, self.down[expert])[:, 0] * share.flatten()[order][:, None]
        return gathered.sum(1), dense, torch.zeros_like(x).index_add(0, token, made)


class CountedExperts(Experts):
    """The same experts, each for the rows of the tokens that have chosen it: how many these are is
    not known before."""

    def forward(self, x):
        share, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, -1)
        choice = F.one_hot(chosen, self.count).permute(2, 1, 0)
        result = torch.zeros_like(x)
        for expert in range(self.count):
            rank, token = torch.where(choice[expert])
            torch._check(token.shape[0] <= x.shape[0])
            made = F.silu(x[token] @ self.up[expert]) @ self.down[expert]
            result = result.index_add(0, token, made * share[token, rank, None])
        return result


def counted_by_data(m, x):
    """Rows that the data choose, one result after the other."""
    result = torch.zeros_like(x)
    for bound in range(4):
        rows, columns = torch.where(x > bound)
        torch._check(rows.shape[0] <= x.numel())
        result.index_add_(0, rows, torch.sigmoid(x[rows]) * x[rows, columns, None])
    return result * 2.0


def counted_up_to(m, x):
    """As `counted_by_data`, with room for as many places as there can be, and for fewer."""
    result = torch.zeros_like(x)
    for bound, most in ((0, x.numel()), (1, 4)):
        places = torch.nonzero_static(x > bound, size=most)
        rows, columns = places.clamp(min=0).unbind(1)
        found = (places[:, :1] >= 0).to(x.dtype)
        result = result.index_add(
            0, rows, torch.sigmoid(x[rows]) * x[rows, columns, None] * found)
    return result * 2.0, places


def by_masks(m, x, rows):
    """What masks of bools choose: elements in a row, rows, sums of them, and elements that are
    put where they were; none of them may be there."""
    y = torch.sigmoid(x)
    part = y[rows]
    put = torch.relu(x)
    put[x > 0.5] = torch.tanh(y[x > 0.5])
    return (torch.masked_select(y, x > 0) * 2.0, part * 3.0, part.sum(0),
            torch.cat((part, y)) * 0.5, put * 2.0)


def repeated(m, x, times):
    """Rows that are repeated as often as the data say."""
    result = torch.repeat_interleave(x * 2.0, times, dim=0)
    torch._check(result.shape[0] <= 12)
    return torch.sigmoid(result), torch.nonzero(times) * 2


def floats(*sizes):
    return torch.randn(*sizes)


# name: function that returns the module and its inputs
PROGRAMS = {
    "experts": lambda: (Experts(), (floats(7, 12),)),
    "by_masks": lambda: (Module(by_masks), (floats(4, 5), torch.tensor([1, 0, 1, 1]).bool())),
    "repeated": lambda: (Module(repeated), (floats(4, 5), torch.tensor([1, 0, 3, 2]))),
    "counted_experts": lambda: (CountedExperts(), (floats(7, 12),)),
    "counted_by_data": lambda: (Module(counted_by_data), (floats(5, 6),)),
    "counted_up_to": lambda: (Module(counted_up_to), (floats(5, 6),)),
}


# Further inputs of programs in which the data decide sizes: none of what is counted, all of it, and
# some
FURTHER = {
    "by_masks": lambda: [(-floats(4, 5).abs(), torch.zeros(4).bool()),
                         (1 + floats(4, 5).abs(), torch.ones(4).bool()),
                         (floats(4, 5), torch.tensor([0, 0, 1, 0]).bool())],
    "repeated": lambda: [(floats(4, 5), torch.tensor([0, 0, 0, 0])),
                         (floats(4, 5), torch.tensor([3, 3, 3, 3])),
                         (floats(4, 5), torch.tensor([0, 1, 0, 4]))],
    "counted_experts": lambda: [(floats(1, 12).expand(7, 12).clone(),), (floats(7, 12),)],
    "counted_by_data": lambda: [(-floats(5, 6).abs(),), (4 + floats(5, 6).abs(),)],
}


def make(name):
    module, inputs = PROGRAMS[name]()
    program, arrays = export(module, inputs)
    for number, further in enumerate(FURTHER.get(name, list)()):
        arrays |= arrays_of(further, run_eager(module, further), f"call{number}_")
    return program, arrays


if __name__ == "__main__":
    run_tool("Make the programs in which the data decide sizes.", PROGRAMS, make,
             "tests/models/cases")
