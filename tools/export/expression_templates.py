"""Templates of random PyTorch expressions, by kind, and the values of their fields.

An expression is about the tensor {x}. What stands between two $ is a layer or a constant that the
module keeps. A template may not suit a tensor: PyTorch decides that (module_sources.py).
"""

import torch

FUNCTIONS = """F.relu F.gelu F.silu F.elu F.softplus F.mish F.hardswish F.hardsigmoid F.relu6
    F.softsign F.logsigmoid F.selu F.tanhshrink torch.sigmoid torch.tanh torch.sin torch.cos
    torch.atan torch.erf torch.abs torch.square torch.floor torch.ceil torch.round torch.trunc
    torch.frac torch.sign torch.nan_to_num torch.isnan torch.isfinite torch.special.expit
    torch.signbit torch.neg"""
ACTIVATIONS = ("F.relu", "F.silu", "F.gelu", "F.hardswish", "F.relu6", "torch.sigmoid",
               "torch.tanh")
DTYPES = ("torch.float32", "torch.int32", "torch.int64", "torch.bool", "torch.float16",
          "torch.int8", "torch.uint8", "torch.int16")

# kind -> (how often it is chosen, its templates); some kinds are for one kind of dtypes
TEMPLATES = {
    "unary float": (5, "; ".join(f"{name}({{x}})" for name in FUNCTIONS.split()) + """;
        F.gelu({x}, approximate='tanh'); F.leaky_relu({x}, 0.1); F.hardtanh({x}, -0.4, 0.7);
        F.celu({x}, 0.7); F.hardshrink({x}, 0.3); F.softshrink({x}, 0.3);
        F.threshold({x}, 0.1, -0.5); F.dropout({x}, 0.5, False); torch.exp({x}.clamp(max=3));
        torch.log({x}.abs() + 0.5); torch.sqrt({x}.abs() + 0.1); torch.rsqrt({x}.abs() + 0.2);
        torch.reciprocal({x}.abs() + 0.5); torch.expm1({x}.tanh()); torch.log1p({x}.abs());
        torch.log2({x}.abs() + 1); torch.tan({x}.clamp(-1, 1)); torch.asin({x}.tanh());
        torch.sinh({x}.clamp(-2, 2)); torch.exp2({x}.clamp(-3, 3));
        torch.logit({x}.sigmoid(), 1e-3); torch.clamp({x}, -0.5, 0.5); torch.clamp({x}, min=0.1);
        torch.clamp({x}, max=0.2); {x} ** 2; {x} ** 3; {x}.abs() ** 0.5; 2.0 - {x};
        1.0 / ({x}.abs() + 1); {x} * 0.5; {x} + 1; {x} / 3; {x} - 0.25; {x} // 0.5;
        torch.remainder({x}, 0.7); torch.fmod({x}, 0.7)"""),
    "unary int": (5, """-{x}; {x}.abs(); ~{x}; {x} + 3; {x} * 2; {x} // 2; {x} % 3; 5 - {x};
        {x} / 2; {x}.clamp(1, 4); torch.sign({x}); {x} * 0.5; {x} & 5; {x} >> 1; {x} << 2;
        torch.square({x}); {x}.float().tanh(); F.one_hot({x}.abs() % 5, 5); {x} + 0.5; {x} ** 2;
        torch.bitwise_not({x}); torch.fmod({x}, 3); torch.cumsum({x}, -1); F.relu({x});
        torch.remainder({x}, 4); torch.div({x}, 3, rounding_mode='floor')"""),
    "unary bool": (5, "~{x}; torch.logical_not({x}); {x}.int()"),
    "binary": (2, """{a} + {b}; {a} - {b}; {a} * {b}; torch.maximum({a}, {b});
        torch.minimum({a}, {b}); torch.add({a}, {b}, alpha=2); torch.sub({a}, {b}, alpha=3)"""),
    "binary float": (3, """{a} / ({b}.abs() + 1); torch.atan2({a}, {b}); torch.lerp({a}, {b}, 0.3);
        torch.pow({a}.abs() + 0.1, {b}.tanh()); torch.addcmul({a}, {a}, {b}, value=0.5);
        torch.addcdiv({a}, {a}, {b}.abs() + 1, value=0.5); torch.hypot({a}, {b});
        torch.div({a}, {b}.abs() + 1, rounding_mode='floor'); torch.fmax({a}, {b});
        torch.div({a}, {b}.abs() + 1, rounding_mode='trunc'); torch.copysign({a}, {b});
        torch.fmod({a}, {b}.abs() + 0.5); torch.remainder({a}, {b}.abs() + 0.5);
        torch.logaddexp({a}, {b}); F.mse_loss({a}, {b}); torch.xlogy({a}, {b}.abs() + 0.5);
        torch.clamp({a}, -{b}.abs(), {b}.abs()); F.cosine_similarity({a}, {b}, -1);
        F.smooth_l1_loss({a}, {b}, reduction='none')"""),
    "binary int": (3, """{a} // ({b}.abs() + 1); {a} % ({b}.abs() + 1); {a} & {b}; {a} | {b};
        {a} ^ {b}; {a} / ({b}.abs() + 1); torch.div({a}, {b}.abs() + 1, rounding_mode='trunc');
        torch.fmod({a}, {b}.abs() + 1); {a} << ({b} % 4); {a} >> ({b} % 3)"""),
    "binary bool": (3, "{a} & {b}; {a} | {b}; {a} ^ {b}; torch.logical_and({a}, {b})"),
    "comparison": (1, """{x} < {y}; {x} <= {y}; {x} > {y}; {x} >= {y}; {x} == {y}; {x} != {y};
        {x} < 0.3; {x} <= 1; {x} > 0; {x} >= 0; {x} == 1; {x} != 0"""),
    "selection": (2, """torch.where({mask}, {x}, {y}); torch.where({mask}, {x}, 0.5);
        {x}.masked_fill({mask}, -1.0); torch.where({x} > 0, {x}, {y});
        torch.where({mask}, 1, {x})"""),
    "cast": (1, "{x}.to({dtype})"),
    "view": (6, """{x}.permute({order}); {x}.transpose({dim}, {dim2}); {x}.unsqueeze({new_dim});
        {x}.squeeze(); {x}.flatten({axis}); {x}.flatten(0, 1); {x}.flatten(-2); {x}.reshape(-1);
        {x}.reshape({factors}); {x}.view({factors}); {x}.flip({dim}); {x}.movedim({dim}, {dim2});
        {x}.mT; torch.rot90({x}, 1, (0, 1)); {x}.roll({shift}, {dim}); {x}.clone();
        {x}.contiguous(); {x}.unflatten({dim}, ({few}, -1))"""),
    "part": (4, """{x}[{around}{start}:]; {x}[{around}{start}:{stop}]; {x}[{around}:-{start}];
        {x}[{around}::2]; {x}.select({dim}, 0); {x}.select({dim}, -1);
        {x}.narrow({dim}, {start}, {stop} - {start}); {x}.split(max({size} // 2, 1), {dim});
        {x}.chunk(2, {dim}); {x}.chunk(3, {dim}); {x}.unbind({dim}); {x}[..., -1];
        {x}[..., {start}::3]; {x}[None, ..., 0]; torch.tril({x}); torch.triu({x}, 1);
        torch.diagonal({x}, 0, 0, -1); {x}.unfold({dim}, 2, 1 + {flag});
        {x}.split([1, {size} - 1], {dim})"""),
    "joining": (3, """torch.cat([{x}, {like}], {dim}); torch.stack([{x}, {like}], {dim});
        torch.cat([{like}, {x}, {x}], {dim}); torch.cat([{x}, {x}.flip({dim})], {dim});
        torch.stack([{x}, {x} * 2, {like}], {new_dim}); {x}.repeat({repeats});
        {x}.unsqueeze({axis}).expand({expanded}); {x}.repeat_interleave(2, {dim});
        torch.tile({x}, (2,)); torch.cat([{x}, {x}.narrow({dim}, 0, 1)], {dim})"""),
    "row": (1, """torch.softmax({x}, {dim}); torch.log_softmax({x}, {dim}); F.softmin({x}, {dim});
        torch.cumsum({x}, {dim}); torch.cumprod({x}.tanh(), {dim}); torch.logsumexp({x}, {dim});
        torch.std({x}, {dim}, keepdim={flag}); torch.var({x}, {dim}, correction=0);
        torch.var_mean({x}, {dim}); torch.norm({x}, dim={dim}); F.normalize({x}, dim={dim});
        torch.linalg.vector_norm({x}, dim={dim}, keepdim=True); F.glu({x}, {dim});
        torch.diff({x}, dim={dim}); torch.prod({x}, {dim}); torch.median({x}, {dim})[0]"""),
    "order": (1, """torch.argmax({x}, {dim}, keepdim={flag}); torch.argmin({x}, {dim});
        torch.max({x}, {dim}); torch.min({x}, {dim}); torch.max({x}, {dim}, keepdim=True)[0];
        torch.sort({x}, {dim}, descending={flag}); torch.argsort({x}, dim={dim}, stable=True);
        torch.topk({distinct}, 2, {dim}); torch.topk({x}, 2, {dim})[0];
        torch.topk({x}, 1, {dim}, largest=False)[0]; torch.kthvalue({distinct}, 1, {dim});
        torch.cummax({x}, {dim})[0]"""),
    "reduction": (1, """{x}.sum({dims}, keepdim={flag}); {x}.mean({dims}, keepdim={flag});
        {x}.amax({dims}, {flag}); {x}.amin({dims}, keepdim={flag}); {x}.sum(); {x}.mean();
        {x}.max(); {x}.min(); {x}.argmax(); {x}.any(); {x}.all(); {x}.any({dim}); {x}.all({dim});
        {x}.sum({dims}, keepdim={flag}, dtype=torch.float32);
        {x}.abs().amax({dims}, keepdim={flag})"""),
    "creation": (1, """torch.zeros_like({x}); torch.ones_like({x}) * 2; torch.full_like({x}, 0.5);
        torch.arange({x}.shape[{dim}]); torch.arange({x}.shape[{dim}], dtype=torch.float32) * 0.1;
        {x} + torch.arange({x}.shape[-1]); torch.eye({x}.shape[-1]) * {x};
        torch.linspace(0, 1, {x}.shape[-1]) * {x}; {x}.new_ones({x}.shape) - {x};
        {x} * {x}.shape[{dim}]; {x}.sum() / {x}.numel()"""),
    "dynamic size": (2, """{x}[{around}:{half}]; {x}[{around}{half}:];
        {x}[{around}:-1] + {x}[{around}1:]; {x}[{around}{x}.shape[{axis}] - 1];
        F.pad({x}, (0, {x}.shape[-1] % 3)); F.pad({x}, (0, -{x}.shape[-1] % 4));
        {x}.reshape({x}.shape[0], -1); {x}.reshape({x}.shape[0] * {x}.shape[1], -1);
        {x}.view(-1, {x}.shape[-1]); torch.zeros({x}.shape[{axis}], 3) + {x}.mean();
        torch.full(({x}.shape[{axis}],), {x}.shape[-1]); {x} / {x}.shape[{axis}];
        torch.arange({x}.shape[0])[:, None] < torch.arange({x}.shape[-1]);
        {x}.mean({axis}) * {x}.shape[{axis}] ** 0.5; {x}[None].expand(2, *{x}.shape);
        torch.cat([{x}, torch.ones({x}.shape[:{axis}] + (2,) + {x}.shape[{axis} + 1:])], {axis});
        {x}.unflatten({axis}, (-1, 2)).flatten({axis}, {axis} + 1);
        {x}.masked_fill(torch.ones({x}.shape[-1], {x}.shape[-1]).tril() == 0, 0.0);
        {x}.repeat_interleave({x}.shape[{axis}], {axis}); {x}.flatten(0, 1);
        F.interpolate({x}, size=({x}.shape[-2] * 2, {x}.shape[-1] + 1));
        F.adaptive_avg_pool2d({x}, ({x}.shape[-2] // 2, 1))"""),
    "change in place": (1, """{x}.clone().add_({y}); {x}.clone().mul_({y}).clamp_(-1, 1);
        {x}.clone().fill_(0.5); F.relu_({x}.clone()); {x}.clone().masked_fill_({x} > 0, 2);
        {x}.clone().zero_(); torch.empty_like({x}).copy_({y}); {x}.clone().sub_({y}).neg_();
        {x}.clone().index_put_((torch.tensor([0]),), {x}.select(0, -1));
        torch.zeros_like({x}).index_copy_({dim}, torch.tensor([0]), {x}.narrow({dim}, 0, 1));
        {x}.clone().index_add_({dim}, torch.tensor([0, 0]), {x}.narrow({dim}, 0, 2), alpha=2);
        {x}.clone().transpose_(0, -1); {x}.clone().unsqueeze_({dim}).squeeze_({dim})"""),
    "layer": (3, """{linear}({x}); $nn.LayerNorm({last}, bias={flag})$({x});
        $nn.RMSNorm({last}, eps=1e-5)$({x}); $nn.PReLU({channels})$({x});
        $nn.GRU({last}, {out}, bias={flag})$({x})[0];
        $nn.LSTM({last}, {out}, batch_first={flag})$({x})[0]; $nn.GRUCell({last}, {out})$({x});
        $nn.LSTMCell({last}, {out})$({x}); $nn.RNNCell({last}, {out})$({x});
        $nn.BatchNorm1d({channels})$({x})"""),
    "image layer": (3, """$nn.Conv{n}d({channels}, {groups} * {few}, {kernel}, {stride}, {padding},
            {dilation}, {groups}, {flag}, '{padding_mode}')$({x});
        $nn.Conv{n}d({channels}, {out}, {kernel}, {stride}, {padding}, {dilation})$({x});
        $nn.Conv{n}d({channels}, {out}, {kernel}, padding='same', bias={flag})$({x});
        $nn.ConvTranspose{n}d({channels}, {groups} * {few}, {kernel}, {stride}, {padding},
            {few} % {stride}, {groups}, {flag})$({x}); $nn.BatchNorm{n}d({channels})$({x});
        $nn.GroupNorm({groups}, {channels})$({x});
        $nn.InstanceNorm{n}d({channels}, affine={flag})$({x})"""),
    "block": (3, """{act}({up}); {x} + {down}({act}({up})); {down}({act}({up}) * {up});
        {x} * torch.sigmoid({x}); {act}({x} + {y}); ({x} * 2 + 3).clamp(0, 6) / 6 * {x};
        ({x} - {x}.mean(-1, keepdim=True)) / ({x}.var(-1, keepdim=True) + 0.1).sqrt();
        {x} * torch.rsqrt({x}.pow(2).mean(-1, keepdim=True) + 1e-3) * 0.5;
        {x} * $torch.randn({rows}, {last}).cos()$ + torch.cat([-{x}[..., {last} // 2:],
            {x}[..., :{last} // 2]], -1) * $torch.randn({rows}, {last}).sin()$;
        torch.softmax({x} @ {like}.mT * 0.3 + {y}, -1) @ {x}"""),
    "image block": (3, """{act}({conv}({x})); $nn.BatchNorm{n}d({width})$({conv}({x}));
        {act}($nn.BatchNorm{n}d({width})$({conv}({x}))); {x} + {back}({act}({conv}({x})));
        {act}($nn.Conv{n}d({channels}, {channels}, {odd}, 1, {odd} // 2, 1, {channels})$({x}));
        {x} + $nn.Conv{n}d({channels}, {channels}, {odd}, 1, {odd} // 2)$({x});
        {x} * {act}($nn.Conv{n}d({channels}, {channels}, 1)$({x}.mean({image}, keepdim=True)));
        {back}({act}({conv}(F.pad({x}, (0, 1)))));
        F.scaled_dot_product_attention({head}, {head}, {head}).transpose(-2, -3).flatten(-2)"""),
    "image": (3, """F.max_pool{n}d({x}, {kernel}, {stride}, {padding}, ceil_mode={flag});
        F.avg_pool{n}d({x}, {kernel}, {stride}, {padding}, {flag}, {flag2});
        F.adaptive_avg_pool{n}d({x}, {few}); F.adaptive_max_pool{n}d({x}, {few});
        F.max_pool{n}d({x}, {kernel}, {stride}, dilation=2); F.local_response_norm({x}, 3);
        F.interpolate({x}, scale_factor=2.0, mode='nearest');
        F.interpolate({x}, scale_factor={scale}, mode='{linear_mode}', align_corners={flag});
        F.interpolate({x}, size={few} + 2, mode='{linear_mode}', align_corners={flag});
        F.interpolate({x}, size={few} + 3, mode='nearest-exact'); F.pad({x}, {pads}, value=0.5);
        F.pad({x}, {sides}, mode='{padding_mode}'); F.pad({x}, {pads}); F.pixel_shuffle({x}, 2);
        F.pixel_unshuffle({x}, 2); F.channel_shuffle({x}, 2); F.lp_pool{n}d({x}.abs(), 2, {kernel});
        F.unfold({x}, {kernel}, padding={padding})"""),
    "product": (3, """{x} @ {matrix}; {x} @ {like}.mT; {x}.mT @ {like}; torch.matmul({x}, {like});
        torch.einsum('...a,az->...z', {x}, {matrix}); torch.einsum('...a,...a->...', {x}, {like});
        torch.einsum('...a,...b->...ab', {x}, {like}); torch.outer({x}, {like});
        torch.bmm({x}, {like}.mT); torch.addmm($torch.randn({out})$, {x}, {matrix});
        torch.baddbmm({x} @ {like}.mT, {x}, {like}.mT, beta=0.5, alpha=0.3);
        F.linear({x}, $torch.randn({out}, {last})$);
        F.bilinear({x}, {like}, $torch.randn({out}, {last}, {last})$);
        torch.tensordot({x}, {matrix}, 1); torch.cdist({x}, {like}); torch.dot({x}, {like})"""),
    "attention": (1, """F.scaled_dot_product_attention({x}, {x}, {x}{attention});
        F.scaled_dot_product_attention({square}, {square}, {square}{attention});
        F.scaled_dot_product_attention({square}, {square}[:, ::2], {square}[:, ::2]{attention},
            enable_gqa=True);
        $nn.MultiheadAttention({last}, {heads}, batch_first=True)$({x}, {x}, {x},
            need_weights={flag})[0]"""),
    "indexing": (2, """{x}.index_select({dim}, {index}); {x}.gather({dim}, {sorted});
        torch.take_along_dim({x}, {sorted}, {dim}); {x}[{around}{index}];
        {x}.index_add({dim}, {index}, {x}.index_select({dim}, {index2}));
        {x}.scatter({dim}, {sorted}, {x}); {x}.index_fill({dim}, {index}, 0.5);
        {x}.scatter_add({dim}, {sorted}, {x}); {x}[{around}{index}, None];
        torch.bucketize({x}, $torch.tensor([-1.0, 0.0, 0.5])$);
        {x}.index_copy({dim}, torch.arange({size}), {x});
        {x}.slice_scatter({x}[{around}1:], {dim}, 1);
        {x}.select_scatter({x}.select({dim}, -1), {dim}, 0);
        $nn.Embedding(7, {width})$({integers} % 7); {x}[{around}{integers} % {size}];
        {x}.take({integers} % {x}.numel());
        F.grid_sample({x}, $torch.rand({batch}, 3, 4, 2) * 2 - 1$, padding_mode='{border}',
            align_corners=False)"""),
}
TEMPLATES = {kind: (weight, [" ".join(text.split()) for text in texts.split(";")])
             for kind, (weight, texts) in TEMPLATES.items()}

# Fields that consist of others
PARTS = {
    "half": "{x}.shape[{axis}] // 2",
    "linear": "$nn.Linear({last}, {out}, {flag})$",
    "up": "$nn.Linear({last}, {width})$({x})",
    "down": "$nn.Linear({width}, {last})$",
    "square": "$nn.Linear({last}, {last})$({x})",
    "head": "$nn.Linear({last}, {last})$({x}).unflatten(-1, ({heads}, {last} // {heads}))"
            ".transpose(-2, -3)",
    "conv": "$nn.Conv{n}d({channels}, {width}, {odd}, {stride}, {odd} // 2)$",
    "back": "$nn.Conv{n}d({width}, {channels}, 1)$",
    "matrix": "$torch.randn({last}, {out})$",
    "index": "$torch.randint(0, {size}, ({count},))$",
    "index2": "$torch.randint(0, {size}, ({count},))$",
    "sorted": "torch.argsort({x}, dim={dim}, stable=True)",
}


def fields_of(source, x):
    """The values of the fields, for an expression about the tensor of this name."""
    chance, value, y = source.chance, source.values[x], source.operand(x)
    sizes, rank, choice = tuple(value.shape), value.ndim, chance.choice
    rows, last = (1, 1, *sizes)[-2:]
    channels = sizes[1] if rank > 1 else 1
    dim = chance.randrange(-(rank or 1), rank or 1)
    axis = dim % (rank or 1)
    size = sizes[axis] if sizes else 1
    start = chance.randrange(size)
    n, kernel, dtype = min(max(rank - 2, 1), 3), choice((1, 2, 3, 5)), choice(DTYPES)
    a, b = (x, y) if chance.random() < 0.7 else (y, x)
    fields = {
        "x": x, "y": y, "a": a, "b": b, "like": source.choose(lambda v: v.shape == sizes),
        "mask": source.choose(lambda v: v.dtype == torch.bool) or f"({x} > 0)",
        "integers": source.choose(lambda v: v.dtype in (torch.int64, torch.int32)),
        # Equal elements may come in any order.
        "distinct": x if value.unique().numel() == value.numel() else None,
        "dtype": dtype, "dim": dim, "dim2": chance.randrange(-(rank or 1), rank or 1),
        "dims": sorted(chance.sample(range(rank), chance.randint(1, rank))) if rank else [],
        "new_dim": chance.randrange(-rank - 1, rank + 1), "axis": axis, "around": ":, " * axis,
        "size": size, "start": start, "stop": chance.randint(start + 1, size),
        "batch": (*sizes, 1)[0], "channels": channels, "rows": rows, "last": last, "n": n,
        "image": tuple(range(2, rank)), "order": chance.sample(range(rank), rank),
        "repeats": [choice((1, 1, 2, 3)) for _ in sizes],
        "expanded": [3 if i == axis else -1 for i in range(rank + 1)],
        "factors": [-1] if source.is_dynamic else factors(value.numel(), chance),
        "flag": chance.random() < 0.5, "flag2": chance.random() < 0.5, "few": choice((1, 2, 3)),
        "shift": chance.randint(-3, 3), "count": choice((1, 2, 5)), "out": choice((1, 3, 4, 6, 8)),
        "width": choice((4, 6, 16, 33)), "act": choice(ACTIVATIONS), "kernel": kernel,
        "odd": choice((1, 3, 3, 5)), "stride": choice((1, 1, 2, 3)),
        "padding": chance.randrange(kernel // 2 + 1), "dilation": choice((1, 1, 1, 2)),
        "groups": choice([g for g in range(1, channels + 1) if channels % g == 0]),
        "heads": choice([h for h in (1, 2, 3, 4, 8) if last % h == 0]),
        "padding_mode": choice(("zeros", "zeros", "reflect", "circular", "replicate")),
        "border": choice(("zeros", "border", "reflection")), "scale": choice((2, 1.5, 0.7)),
        "linear_mode": ("linear", choice(("bilinear", "bicubic")), "trilinear")[n - 1],
        "sides": [chance.randrange(3) for _ in range(2 * n)],
        "pads": [chance.randint(-1, 2) for _ in range(2 * chance.randint(1, rank or 1))],
        "attention": choice((", is_causal=True", "", ", scale=0.3",
                             f", attn_mask=$torch.randn({rows}, {rows})$",
                             f", attn_mask=$torch.rand({rows}, {rows}) < 0.7$"))}
    return fields | {name: text.format_map(fields) for name, text in PARTS.items()}


def factors(count, chance):
    """Random sizes of so many elements, of at most five dimensions."""
    sizes = []
    while count > 1 and len(sizes) < 4:
        sizes.append(chance.choice([n for n in range(1, count + 1) if count % n == 0]))
        count //= sizes[-1]
    return [*sizes, count]
