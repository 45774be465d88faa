"""Random expressions of PyTorch, as text: layers, what networks consist of, products, places.

As in expressions.py.
"""

from expressions import dim_of


def layer(draft, x):
    """A layer with weights, of the sizes that the tensor has."""
    chance, sizes = draft.chance, draft.values[x].shape
    rank, last = len(sizes), sizes[-1]
    out = chance.choice((1, 3, 4, 6, 8))
    bias = chance.random() < 0.7
    kinds = [f"nn.Linear({last}, {out}, {bias})"] * 3 + [
        f"nn.LayerNorm({last}, bias={bias})", f"nn.RMSNorm({last}, eps=1e-5)",
        f"nn.PReLU({sizes[1] if rank > 1 else 1})", f"nn.GRU({last}, {out}, bias={bias})",
        f"nn.LSTM({last}, {out}, batch_first={chance.random() < 0.5})"]
    if rank == 2:
        kinds += [f"nn.GRUCell({last}, {out})", f"nn.LSTMCell({last}, {out})",
                  f"nn.RNNCell({last}, {out})", f"nn.BatchNorm1d({last})"]
    if 3 <= rank <= 5:
        channels, n = sizes[1], rank - 2
        groups = chance.choice([g for g in range(1, channels + 1) if channels % g == 0])
        kernel, stride = chance.choice((1, 2, 3, 5)), chance.choice((1, 1, 2))
        padding, dilation = chance.randrange(kernel // 2 + 1), chance.choice((1, 1, 1, 2))
        mode = chance.choice(("zeros", "zeros", "zeros", "reflect", "circular", "replicate"))
        kinds += [f"nn.Conv{n}d({channels}, {groups * chance.choice((1, 2, 3))}, {kernel}, {stride}"
                  f", {padding}, {dilation}, {groups}, {bias}, '{mode}')",
                  f"nn.Conv{n}d({channels}, {out}, {kernel}, {stride}, {padding}, {dilation})",
                  f"nn.Conv{n}d({channels}, {out}, {kernel}, padding='same', bias={bias})",
                  f"nn.ConvTranspose{n}d({channels}, {groups * chance.choice((1, 2))}, {kernel}, "
                  f"{stride}, {padding}, {chance.randrange(stride)}, {groups}, {bias})",
                  f"nn.GroupNorm({groups}, {channels})", f"nn.BatchNorm{n}d({channels})",
                  f"nn.InstanceNorm{n}d({channels}, affine={bias})"] * 2
    made = draft.layer(chance.choice(kinds))
    end = "[0]" if "LSTM(" in draft.layers[-1][1] or "GRU(" in draft.layers[-1][1] else ""
    return f"{made}({x}){end}"


def block(draft, x):
    """What networks consist of, and what kernels do together."""
    chance, sizes = draft.chance, draft.values[x].shape
    rank, last = len(sizes), sizes[-1]
    width = chance.choice((4, 6, 16, 33))
    act = chance.choice(("F.relu({})", "F.silu({})", "F.gelu({})", "torch.sigmoid({})",
                         "F.hardswish({})", "F.relu6({})", "torch.tanh({})"))

    def called(layer, of):
        return f"{draft.layer(layer)}({of})"

    hidden = called(f"nn.Linear({last}, {width})", x)
    gated = f"{act.format(hidden)} * {called(f'nn.Linear({last}, {width})', x)}"
    half = last // 2
    angles = draft.constant(f"torch.randn({list(sizes[-2:])})")
    turned = f"torch.cat([-{x}[..., {half}:], {x}[..., :{half}]], -1)"
    choices = [
        act.format(hidden), f"{x} + {called(f'nn.Linear({width}, {last})', act.format(hidden))}",
        called(f"nn.Linear({width}, {last})", gated), f"{x} * torch.sigmoid({x})",
        f"({x} - {x}.mean(-1, keepdim=True)) / ({x}.var(-1, keepdim=True) + 0.1).sqrt()",
        f"{x} * torch.rsqrt({x}.pow(2).mean(-1, keepdim=True) + 1e-3) * 0.5",
        f"{x} * {angles}.cos() + {turned} * {angles}.sin()",
        f"torch.softmax({x} @ {draft.like(x)}.mT * 0.3 + {draft.operand(x)}, -1) @ {x}",
        act.format(f"({x} + {draft.operand(x)})"), f"({x} * 2 + 3).clamp(0, 6) / 6 * {x}"]
    if 3 <= rank <= 4:
        n, channels, kernel = rank - 2, sizes[1], chance.choice((1, 3, 3, 5))
        more = f"{chance.choice((1, 1, 2))}, {kernel // 2}"
        conv = f"nn.Conv{n}d({channels}, {width}, {kernel}, {more})"
        back = f"nn.Conv{n}d({width}, {channels}, 1)"
        same = f"nn.Conv{n}d({channels}, {channels}, {kernel}, 1, {kernel // 2}"
        dims = tuple(range(2, rank))
        scale = called(f"nn.Conv{n}d({channels}, {channels}, 1)", f"{x}.mean({dims}, keepdim=True)")
        heads = next(h for h in (4, 3, 2, 1) if last % h == 0)
        view = f".unflatten(-1, ({heads}, {last // heads})).transpose(-2, -3)"
        q, k, v = (called(f"nn.Linear({last}, {last})", x) + view for _ in range(3))
        choices += [
            act.format(called(conv, x)), called(f"nn.BatchNorm{n}d({width})", called(conv, x)),
            act.format(called(f"nn.BatchNorm{n}d({width})", called(conv, x))),
            f"{x} + {called(back, act.format(called(conv, x)))}",
            act.format(called(f"{same}, groups={channels})", x)), f"{x} + {called(same + ')', x)}",
            f"{x} * {act.format(scale)}",
            called(back, act.format(called(conv, f"F.pad({x}, (0, 1))"))),
            f"F.scaled_dot_product_attention({q}, {k}, {v}).transpose(-2, -3).flatten(-2)"] * 2
    return chance.choice(choices)


def picture(draft, x):
    """Pooling, resampling and borders."""
    chance, rank = draft.chance, draft.values[x].ndim
    n = min(max(rank - 2, 1), 3)
    kernel, stride = chance.choice((2, 3)), chance.choice((1, 2, 3))
    padding, ceil = chance.randrange(kernel // 2 + 1), chance.random() < 0.3
    out = chance.choice((1, 2, 3))
    linear = {1: "linear", 2: chance.choice(("bilinear", "bicubic")), 3: "trilinear"}[n]
    align = chance.random() < 0.5
    sides = [chance.randrange(3) for _ in range(2 * n)]
    mode = chance.choice(("reflect", "replicate", "circular"))
    some = [chance.randint(-1, 2) for _ in range(2 * chance.randint(1, rank))]
    return chance.choice((
        f"F.max_pool{n}d({x}, {kernel}, {stride}, {padding}, ceil_mode={ceil})",
        f"F.avg_pool{n}d({x}, {kernel}, {stride}, {padding}, {ceil}, {chance.random() < 0.5})",
        f"F.adaptive_avg_pool{n}d({x}, {out})", f"F.adaptive_max_pool{n}d({x}, {out})",
        f"F.max_pool{n}d({x}, {kernel}, {stride}, dilation=2)",
        f"F.interpolate({x}, scale_factor=2.0, mode='nearest')",
        f"F.interpolate({x}, scale_factor={chance.choice((2, 1.5, 0.7))}, mode='{linear}', "
        f"align_corners={align})", f"F.interpolate({x}, size={out + 3}, mode='nearest-exact')",
        f"F.interpolate({x}, size={out + 2}, mode='{linear}', align_corners={align})",
        f"F.pad({x}, {sides}, mode='{mode}')", f"F.pad({x}, {some}, value=0.5)",
        f"F.pad({x}, {some})", f"F.pixel_shuffle({x}, 2)", f"F.pixel_unshuffle({x}, 2)",
        f"F.lp_pool{n}d({x}.abs(), 2, {kernel})", f"F.channel_shuffle({x}, 2)",
        f"F.unfold({x}, {kernel}, padding={padding})", f"F.local_response_norm({x}, 3)"))


def product(draft, x):
    chance = draft.chance
    y, out = draft.like(x), chance.choice((1, 3, 4, 7))
    rank, last = draft.values[x].ndim, draft.values[x].shape[-1]
    weight = draft.constant(f"torch.randn({last}, {out})")
    letters = "abcd"[:rank]
    return chance.choice((
        f"{x} @ {weight}", f"{x} @ {y}.mT", f"{x}.mT @ {y}", f"torch.matmul({x}, {y})",
        f"torch.einsum('{letters},{letters[-1:]}z->{letters[:-1]}z', {x}, {weight})",
        f"torch.einsum('{letters},{letters}->{letters[:-1]}', {x}, {y})",
        f"torch.einsum('...a,...b->...ab', {x}, {y})", f"torch.outer({x}, {y})",
        f"torch.bmm({x}, {y}.mT)",
        f"torch.addmm({draft.constant(f'torch.randn({out})')}, {x}, {weight})",
        f"torch.baddbmm({x} @ {y}.mT, {x}, {y}.mT, beta=0.5, alpha=0.3)",
        f"F.linear({x}, {draft.constant(f'torch.randn({out}, {last})')})",
        f"F.bilinear({x}, {y}, {draft.constant(f'torch.randn({out}, {last}, {last})')})",
        f"torch.tensordot({x}, {weight}, 1)", f"torch.cdist({x}, {y})", f"torch.dot({x}, {y})"))


def attention(draft, x):
    """scaled_dot_product_attention of what the tensor has as heads, rows and elements."""
    chance, sizes = draft.chance, draft.values[x].shape
    *_, rows, size = sizes
    if len(sizes) == 3 and chance.random() < 0.4:
        heads = chance.choice([h for h in range(1, size + 1) if size % h == 0])
        made = draft.layer(f"nn.MultiheadAttention({size}, {heads}, batch_first=True)")
        return f"{made}({x}, {x}, {x}, need_weights={chance.random() < 0.3})[0]"
    query = key = value = x
    if chance.random() < 0.5:
        query, key, value = (f"{draft.layer(f'nn.Linear({size}, {size})')}({x})" for _ in range(3))
    mask = draft.constant(chance.choice((f"torch.randn({rows}, {rows})",
                                         f"torch.rand({rows}, {rows}) < 0.7")))
    more = chance.choice((", is_causal=True", f", attn_mask={mask}", "", ", scale=0.3"))
    if len(sizes) == 4 and sizes[1] % 2 == 0 and chance.random() < 0.5:
        return (f"F.scaled_dot_product_attention({query}, {key}[:, ::2], {value}[:, ::2]{more}, "
                f"enable_gqa=True)")
    return f"F.scaled_dot_product_attention({query}, {key}, {value}{more})"


def places(draft, x):
    """Elements read from, or put to, places that numbers say."""
    chance, dim = draft.chance, dim_of(draft, x)
    sizes = draft.values[x].shape
    size = sizes[dim]
    index = draft.constant(f"torch.randint(0, {size}, ({chance.choice((1, 2, 5))},))")
    whole = f"torch.argsort({x}, {dim}, stable=True)"
    numbers = draft.any("int64", "int32")
    around = ":, " * (dim % len(sizes))
    choices = [f"{x}.index_select({dim}, {index})", f"{x}.gather({dim}, {whole})",
               f"torch.take_along_dim({x}, {whole}, {dim})", f"{x}[{around}{index}]",
               f"{x}.index_add({dim}, {index}, {x}.index_select({dim}, {index}))",
               f"{x}.scatter({dim}, {whole}, {x})", f"{x}.index_fill({dim}, {index}, 0.5)",
               f"{x}.scatter_add({dim}, {whole}, {x})",
               f"torch.bucketize({x}, {draft.constant('torch.tensor([-1.0, 0.0, 0.5])')})",
               f"{x}[{around}{index}, None]", f"{x}.index_copy({dim}, torch.arange({size}), {x})",
               f"{x}.slice_scatter({x}[{around}1:], {dim}, 1)",
               f"{x}.select_scatter({x}.select({dim}, -1), {dim}, 0)"]
    if numbers:
        table = draft.layer(f"nn.Embedding(7, {chance.choice((3, 4, 8))})")
        choices += [f"{table}({numbers} % 7)", f"{x}[{around}{numbers} % {size}]",
                    f"{x}.take({numbers} % {draft.values[x].numel()})"] * 3
    if len(sizes) == 4:
        grid = draft.constant(f"torch.rand({sizes[0]}, 3, 4, 2) * 2 - 1")
        border = chance.choice(("zeros", "border", "reflection"))
        choices += [f"F.grid_sample({x}, {grid}, padding_mode='{border}', align_corners=False)"] * 2
    return chance.choice(choices)
