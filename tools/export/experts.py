"""A mixture of experts, of which each token has a few: a module of models.py."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ExpertLayer(nn.Module):
    """A mixture of experts as transformers computes it in one batch: each token's matrices are
    rows of the experts' weights."""

    def __init__(self, width, hidden, experts=8, active=2):
        super().__init__()
        self.active = active
        self.router = nn.Linear(width, experts, bias=False)
        self.gate_up = nn.Parameter(torch.randn(experts, 2 * hidden, width) * width ** -0.5)
        self.down = nn.Parameter(torch.randn(experts, width, hidden) * hidden ** -0.5)

    def forward(self, x):
        tokens, width = x.shape
        shares, chosen = torch.topk(torch.softmax(self.router(x), -1), self.active, dim=-1)
        shares = shares / shares.sum(-1, keepdim=True)
        experts = chosen.reshape(-1)
        rows = x.unsqueeze(1).expand(-1, self.active, -1).reshape(-1, width, 1)
        gate, up = torch.bmm(self.gate_up[experts], rows).squeeze(-1).chunk(2, -1)
        y = torch.bmm(self.down[experts], (F.silu(gate) * up).unsqueeze(-1))
        return (y.view(tokens, self.active, width) * shares.unsqueeze(-1)).sum(1)


class Experts(nn.Module):
    """A token through layers of experts, from a table of tokens to the scores of the next one."""

    def __init__(self, tokens=130, width=32, hidden=24, layers=2):
        super().__init__()
        self.table = nn.Embedding(tokens, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.layers = nn.ModuleList(ExpertLayer(width, hidden) for _ in range(layers))
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, ids):
        x = self.table(ids)
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return self.head(x)
