#!/usr/bin/env python3
"""Make the test programs of tests/models/ that live by kernels outside of delegates.

    python tools/export/host_kernels.py [NAME...] [--out tests/models]

places, complex, masks: one call; the NAME.npz is as that of tools/export/models.py.

The others change buffers there. The NAME.npz has the inputs and outputs step0_in0, ..
step0_out0, .. of runs one after another.

kept: rows of a cache replaced at places that an input names, as `transformers` exports its static
caches, between delegates.
kept_attention: ExecuTorch's kernels for caches and attention, and nothing in delegates: the views
between them are left out of the file.
kept_batch: two sequences, each with positions of its own and padding on the left, in caches and
attention as the exporter takes them apart.
kept_ring: the same with ExecuTorch's kernels, in caches that are rings; a mask says what is seen.

Needs the same as tools/export/models.py.
"""

import torch
import torch.nn.functional as F
from exporting import export, lower, lower_portable, run_in_turn, run_tool
from torch import nn

ROWS, HEADS, SIZE = 12, 2, 4


class Masks(nn.Module):
    """Elements, rows and columns replaced where masks of bools say so."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x, rows, fill, numbers):
        # (2, 4, 6), (2, 4), (5,), (4, 3)
        y = self.linear(x)
        clipped, filled, added, chosen, columns, few = (y.clone() for _ in range(6))
        clipped[clipped > 0.5] = 0.5
        filled[rows] = fill
        added.index_put_((rows,), fill[None] * 2, accumulate=True)
        chosen[:, rows[0]] = y[:, :1]
        columns[:, :, fill > 0] = -1.0
        few[fill.sum() * y < 0] = 0.0
        counts = numbers.clone()
        counts[numbers > 2] = 7
        seen = rows.clone()
        seen[:, fill[:4] > 0] = True
        return clipped, filled, added, chosen, columns, few, counts, seen


class Complex(nn.Module):
    """Complex numbers: a rotary embedding as Llama 4 has it, a sound's spectrum, there and back."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("turn", torch.polar(torch.ones(5, 4), torch.randn(5, 4)))

    def forward(self, x, angles, sound):
        # (2, 5, 8), (5, 4), (1, 64)
        query = torch.view_as_complex(self.linear(x).unflatten(-1, (4, 2)))
        turned = query * torch.polar(torch.ones_like(angles), angles) * self.turn
        turned = torch.view_as_real(torch.cat([turned, (query * 2)[:, 1:3] - 1], -2)).flatten(-2)
        spectrum = torch.stft(sound, 16, 8, window=self.window, return_complex=True)
        masked = spectrum * spectrum.abs().sigmoid()
        back = torch.istft(masked, 16, 8, window=self.window)
        real = torch.view_as_real(masked.transpose(1, 2)[..., -4:]).sum(-2)
        whole = torch.fft.ifft2(torch.fft.fft2(x, norm="ortho") * 0.5)
        return turned, back, real, spectrum.abs(), torch.view_as_real(whole)


class Places(nn.Module):
    """Reading and writing at places: padding modes, resampling, tables, and what stays on a CPU."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 12)
        self.register_buffer("channels", torch.tensor([2, 0, 1, 2]))

    def forward(self, picture, grid, words):
        # (1, 3, 6, 7), (1, 4, 5, 2), (2, 5)
        reflected = F.pad(picture, (1, 2, 2, 1), mode="reflect")
        around = F.pad(picture, (1, 1, 1, 1), mode="circular")
        large = F.interpolate(picture, scale_factor=1.7, mode="bilinear")
        sampled = F.grid_sample(picture, grid, mode="bilinear", align_corners=True,
                                padding_mode="border")
        nearest = F.grid_sample(picture, grid, mode="nearest", align_corners=False)
        mixed = picture[:, self.channels].gather(3, (words[:1, :4] % 7)[:, :, None, None])
        windows = picture.unfold(3, 3, 2)
        sums = self.table(words).cumsum(1)
        values, order = picture.sort(-1)
        return (reflected, around, large, sampled, nearest, mixed, windows, sums, values, order,
                torch.fmod(picture, 0.3))  # fmt: skip


class Kept(nn.Module):
    """Keys of tokens at places of a cache."""

    def __init__(self):
        super().__init__()
        self.keys = nn.Linear(16, HEADS * SIZE)
        self.register_buffer("cache", torch.zeros(1, HEADS, ROWS, SIZE))

    def forward(self, x, places):
        keys = self.keys(x).view(1, -1, HEADS, SIZE).transpose(1, 2)
        self.cache.index_copy_(2, places, keys)
        return (self.cache * 2).sum(-1)


class Attention(nn.Module):
    """Attention over a cache from a position on: by one kernel, or by its halves."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(16, n * SIZE) for n in (2 * HEADS, HEADS, HEADS))
        for name in ("keys", "values", "more_keys", "more_values"):
            self.register_buffer(name, torch.zeros(1, ROWS, HEADS, SIZE))

    def forward(self, x, position):
        start = position[0].item()
        torch._check(start >= 0)
        torch._check(start < ROWS)
        query, key, value = (part(x).view(1, x.shape[1], -1, SIZE) for part in self.parts)
        torch.ops.llama.update_cache(key, self.keys, start)
        torch.ops.llama.update_cache(value, self.values, start)
        halves = torch.ops.llama.custom_sdpa(query, self.keys, self.values, start, None, 0, True)
        whole = torch.ops.llama.sdpa_with_kv_cache(
            query * 2, key, value, self.more_keys, self.more_values, start, x.shape[1], None, 0,
            True)
        return halves.flatten(2), whole.flatten(2)


class Batch(nn.Module):
    """Attention of two sequences over caches, from places that differ between them."""

    def __init__(self, ring):
        super().__init__()
        self.ring = ring
        self.parts = nn.ModuleList(nn.Linear(16, n * SIZE) for n in (2 * HEADS, HEADS, HEADS))
        sizes = (2, ROWS, HEADS, SIZE) if ring else (2, HEADS, ROWS, SIZE)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(sizes))

    def forward(self, x, places, mask):
        query, key, value = (part(x).view(2, x.shape[1], -1, SIZE) for part in self.parts)
        if self.ring:
            torch.ops.llama.update_cache_with_indices(key, self.keys, 0, places)
            torch.ops.llama.update_cache_with_indices(value, self.values, 0, places)
            result = torch.ops.llama.custom_sdpa(query, self.keys, self.values, 0, mask)
            return result.flatten(2)
        sequence = torch.arange(2)[:, None]
        self.keys[sequence, :, places] = key
        self.values[sequence, :, places] = value
        result = F.scaled_dot_product_attention(query.transpose(1, 2), self.keys, self.values,
                                                attn_mask=mask, enable_gqa=True)
        return result.transpose(1, 2).flatten(2)


def batch_runs(ring):
    """Inputs of three runs of three tokens a sequence. The rings go round in the third run."""
    padding, runs = torch.tensor([0, 2]), []
    for start in (0, 3, 6):
        token = torch.arange(start, start + 3)
        # Of kept_batch a sequence begins at its own row, and its padding is seen by nobody.
        places = (token + 4) % ROWS + torch.zeros(2, 1, dtype=torch.int64)
        if not ring:
            places = token + torch.tensor([[0], [1]])
        row, newest = torch.arange(ROWS), places[:, :, None]
        if ring:
            age = (newest - row) % ROWS
            seen = (age <= token[None, :, None]) & (age < 5)
            mask = torch.where(seen[0], 0.0, -torch.inf)
        else:
            seen = (row <= newest) & (row >= padding[:, None, None])
            mask = torch.where(seen[:, None], 0.0, torch.finfo(torch.float32).min)
        runs.append((torch.randn(2, 3, 16), places, mask))
    return runs


# name: function that returns the module and its inputs
SINGLE = {
    "places": lambda: (Places(), (torch.randn(1, 3, 6, 7), 2.4 * torch.rand(1, 4, 5, 2) - 1.2,
                                  torch.randint(0, 30, (2, 5)))),
    "complex": lambda: (Complex(), (torch.randn(2, 5, 8), 3 * torch.randn(5, 4),
                                    torch.randn(1, 64))),
    "masks": lambda: (Masks(), (torch.randn(2, 4, 6), torch.rand(2, 4) < 0.5, torch.randn(5),
                                torch.randint(0, 5, (4, 3)))),
}


def make_kept(name):
    """The program's bytes and its arrays."""
    if name == "kept":
        runs = [(torch.randn(1, 3, 16), torch.tensor(places))
                for places in ((0, 1, 2), (3, 4, 5), (11, 0, 7))]
        module, make_program = Kept().eval(), lower
    elif name == "kept_batch":
        module, make_program, runs = Batch(ring=False).eval(), lower, batch_runs(ring=False)
    else:
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (declares the operators)

        runs = [(torch.randn(1, 3, 16), torch.tensor([start])) for start in (0, 3, 6)]
        module, make_program = Attention().eval(), lower_portable
        if name == "kept_ring":
            module, runs = Batch(ring=True).eval(), batch_runs(ring=True)
    return make_program(module, runs[0]), run_in_turn(module, runs, "step")


def make(name):
    with torch.no_grad():  # the copies that complex numbers are viewed by have no derivatives
        return export(*SINGLE[name]()) if name in SINGLE else make_kept(name)


if __name__ == "__main__":
    run_tool("Make the test programs that live by kernels outside of delegates.",
             [*SINGLE, "kept", "kept_attention", "kept_batch", "kept_ring"], make, "tests/models")
