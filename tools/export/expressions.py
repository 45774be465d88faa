"""Random expressions of PyTorch, as text: elements, views, parts, joins, reductions, sizes.

Each function returns an expression of the tensor that is called `x`, or raises; whether PyTorch
takes the expression is found by trying. `draft` is the module so far (drafts.py).
"""

import torch

WIDE = "torch.float32"
UNARY = ("torch.relu({})", "torch.sigmoid({})", "torch.tanh({})", "F.gelu({})",
         "F.gelu({}, approximate='tanh')", "F.silu({})", "F.elu({})", "F.softplus({})",
         "F.mish({})", "F.hardswish({})", "F.hardsigmoid({})", "F.leaky_relu({}, 0.1)",
         "F.relu6({})", "F.hardtanh({}, -0.4, 0.7)", "F.softsign({})", "F.logsigmoid({})",
         "F.selu({})", "F.celu({}, 0.7)", "F.tanhshrink({})", "F.hardshrink({}, 0.3)",
         "F.softshrink({}, 0.3)", "F.threshold({}, 0.1, -0.5)", "torch.exp({}.clamp(max=3))",
         "torch.log({}.abs() + 0.5)", "torch.sqrt({}.abs() + 0.1)", "torch.rsqrt({}.abs() + 0.2)",
         "torch.sin({})", "torch.cos({})", "torch.atan({})", "torch.erf({})", "torch.abs({})",
         "-{}", "torch.square({})", "torch.reciprocal({}.abs() + 0.5)", "torch.expm1({}.tanh())",
         "torch.log1p({}.abs())", "torch.floor({})", "torch.ceil({})", "torch.round({})",
         "torch.trunc({})", "torch.frac({})", "torch.sign({})", "torch.log2({}.abs() + 1)",
         "torch.tan({}.clamp(-1, 1))", "torch.asin({}.tanh())", "torch.sinh({}.clamp(-2, 2))",
         "torch.exp2({}.clamp(-3, 3))", "F.dropout({}, 0.5, False)", "torch.nan_to_num({})",
         "torch.isnan({})", "torch.isfinite({})", "torch.logit({}.sigmoid(), 1e-3)",
         "torch.special.expit({})", "torch.clamp({}, -0.5, 0.5)", "torch.clamp({}, min=0.1)",
         "torch.clamp({}, max=0.2)", "{} ** 2", "{} ** 3", "{}.abs() ** 0.5", "2.0 - {}",
         "1.0 / ({}.abs() + 1)", "{} * 0.5", "{} + 1", "{} / 3", "{} - 0.25", "{} // 0.5",
         "torch.remainder({}, 0.7)", "torch.fmod({}, 0.7)", "torch.signbit({})")
ROWS = ("torch.softmax({}, {})", "torch.log_softmax({}, {})", "torch.cumsum({}, {})",
        "torch.logsumexp({}, {})", "torch.std({}, {})", "torch.var({}, {}, correction=0)",
        "torch.norm({}, dim={})", "F.normalize({}, dim={})", "F.softmin({}, {})",
        "torch.cumprod({}.tanh(), {})", "F.glu({}, {})", "torch.std({}, {}, keepdim=True)",
        "torch.linalg.vector_norm({}, dim={}, keepdim=True)", "torch.diff({}, dim={})",
        "torch.var_mean({}, {})", "torch.prod({}, {})", "torch.median({}, {})[0]")
ORDER = ("torch.argmax({}, {})", "torch.argmin({}, {})", "torch.argmax({}, {}, keepdim=True)",
         "torch.max({}, {})", "torch.min({}, {})", "torch.sort({}, {})",
         "torch.sort({}, {}, descending=True)", "torch.argsort({}, {}, stable=True)",
         "torch.topk({}, 2, {})[0]", "torch.topk({}, 1, {}, largest=False)[0]",
         "torch.amax({}, {})",
         "torch.amin({}, {}, keepdim=True)", "torch.max({}, {}, keepdim=True)[0]",
         "torch.kthvalue({}, 1, {})", "torch.cummax({}, {})[0]")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.minimum({}, {})",
          "torch.add({}, {}, alpha=2)", "torch.sub({}, {}, alpha=3)")
FLOAT_BINARY = ("{} / ({}.abs() + 1)", "torch.atan2({}, {})", "torch.lerp({}, {}, 0.3)",
                "torch.pow({}.abs() + 0.1, {}.tanh())", "torch.addcmul({0}, {0}, {1}, value=0.5)",
                "torch.addcdiv({0}, {0}, {1}.abs() + 1, value=0.5)", "torch.hypot({}, {})",
                "torch.div({}, {}.abs() + 1, rounding_mode='floor')",
                "torch.div({}, {}.abs() + 1, rounding_mode='trunc')", "torch.fmax({}, {})",
                "torch.fmod({}, {}.abs() + 0.5)", "torch.remainder({}, {}.abs() + 0.5)",
                "torch.copysign({}, {})", "torch.logaddexp({}, {})", "F.mse_loss({}, {})",
                "torch.clamp({0}, -{1}.abs(), {1}.abs())", "torch.xlogy({}, {}.abs() + 0.5)",
                "F.cosine_similarity({}, {}, -1)", "F.smooth_l1_loss({}, {}, reduction='none')")
INT_BINARY = ("{} // ({}.abs() + 1)", "{} % ({}.abs() + 1)", "{} & {}", "{} | {}", "{} ^ {}",
              "{} / ({}.abs() + 1)", "torch.div({}, {}.abs() + 1, rounding_mode='trunc')",
              "torch.fmod({}, {}.abs() + 1)", "{} << ({} % 4)", "{} >> ({} % 3)")
INT_UNARY = ("-{}", "{}.abs()", "~{}", "{} + 3", "{} * 2", "{} // 2", "{} % 3", "5 - {}", "{} / 2",
             "{}.clamp(1, 4)", "torch.sign({})", "{} * 0.5", "{} & 5", "{} >> 1", "{} << 2",
             "torch.square({})", "{}.float().tanh()", "F.one_hot({}.abs() % 5, 5)", "{} + 0.5",
             "{} ** 2", "torch.bitwise_not({})", "torch.fmod({}, 3)", "torch.cumsum({}, -1)",
             "F.relu({})", "torch.remainder({}, 4)", "torch.div({}, 3, rounding_mode='floor')")
COMPARISONS = "<", "<=", ">", ">=", "==", "!="
CASTS = (WIDE, "torch.int32", "torch.int64", "torch.bool", "torch.float16", "torch.int8",
         "torch.uint8", "torch.int16")


def dim_of(draft, x):
    """A dimension of a tensor, counted from either side."""
    rank = draft.values[x].ndim
    return draft.chance.randrange(-(rank or 1), rank or 1)


def some_dims(draft, x):
    rank = draft.values[x].ndim
    return sorted(draft.chance.sample(range(rank), draft.chance.randint(1, rank)))


def unary(draft, x):
    dtype = draft.values[x].dtype
    if dtype == torch.bool:
        return draft.chance.choice(("~{}", "torch.logical_not({})", "{}.int()")).format(x)
    table = UNARY if dtype.is_floating_point else INT_UNARY
    return draft.chance.choice(table).format(x)


def binary(draft, x):
    y = draft.operand(x)
    dtypes = {draft.values[x].dtype, draft.values[y].dtype}
    if torch.bool in dtypes:
        table = "{} & {}", "{} | {}", "{} ^ {}", "torch.logical_and({}, {})", "{} * {}", "{} + {}"
    else:
        table = BINARY + (FLOAT_BINARY if all(d.is_floating_point for d in dtypes) else INT_BINARY)
    pair = (x, y) if draft.chance.random() < 0.7 else (y, x)
    return draft.chance.choice(table).format(*pair)


def compare(draft, x):
    y = draft.chance.choice((draft.operand(x), "0", "0.3", "1"))
    return f"{x} {draft.chance.choice(COMPARISONS)} {y}"


def choose(draft, x):
    mask = draft.any("bool") or f"({x} > 0)"
    y = draft.operand(x)
    return draft.chance.choice((f"torch.where({mask}, {x}, {y})", f"torch.where({mask}, {x}, 0.5)",
                                f"{x}.masked_fill({mask}, -1.0)", f"torch.where({x} > 0, {x}, {y})",
                                f"torch.where({mask}, 1, {x})"))


def cast(draft, x):
    dtype = draft.chance.choice(CASTS)
    if draft.values[x].is_floating_point() and "float" not in dtype:
        low = 0 if "uint" in dtype else -9
        return f"({x} * 3).clamp({low}, 9).to({dtype})"
    return f"{x}.to({dtype})"


def view(draft, x):
    """Other sizes or another order of the same elements."""
    chance, sizes = draft.chance, draft.values[x].shape
    rank, dim = len(sizes), dim_of(draft, x)
    order = chance.sample(range(rank), rank)
    choices = [f"{x}.permute({order})", f"{x}.transpose({dim}, {dim_of(draft, x)})",
               f"{x}.unsqueeze({chance.randrange(-rank - 1, rank + 1)})", f"{x}.squeeze()",
               f"{x}.flatten({chance.randrange(max(rank, 1))})", f"{x}.flip({dim})",
               f"{x}.movedim({dim}, {dim_of(draft, x)})", f"{x}.mT", f"torch.rot90({x}, 1, (0, 1))",
               f"{x}.roll({chance.randint(-3, 3)}, {dim})", f"{x}.clone()", f"{x}.contiguous()",
               f"{x}.reshape(-1)", f"{x}.flatten(0, 1)", f"{x}.flatten(-2)",
               f"{x}.unflatten({dim}, ({chance.choice((2, 3))}, -1))"]
    if not draft.dynamic:
        target, left = [], draft.values[x].numel()
        while left > 1 and len(target) < 4:
            divisors = [n for n in range(1, left + 1) if left % n == 0]
            target.append(chance.choice(divisors))
            left //= target[-1]
        choices += [f"{x}.reshape({[*target, left]})"] * 4
    return chance.choice(choices)


def part(draft, x):
    """Some of the elements."""
    chance, sizes = draft.chance, draft.values[x].shape
    dim = dim_of(draft, x)
    size = sizes[dim] if sizes else 1
    start = chance.randrange(max(size, 1))
    stop = chance.randint(start + 1, size) if size > start + 1 else size
    everything = ":, " * (dim % len(sizes)) if sizes else ""
    return chance.choice((
        f"{x}[{everything}{start}:]", f"{x}[{everything}{start}:{stop}]",
        f"{x}[{everything}:{-start or None}]", f"{x}[{everything}::2]", f"{x}.select({dim}, 0)",
        f"{x}.select({dim}, -1)", f"{x}.narrow({dim}, {start}, {max(stop - start, 1)})",
        f"{x}.split({max(size // 2, 1)}, {dim})", f"{x}.chunk({chance.choice((2, 3))}, {dim})",
        f"{x}.unbind({dim})", f"{x}[..., -1]", f"{x}[..., {start}::3]", f"{x}[None, ..., 0]",
        f"torch.tril({x})", f"torch.triu({x}, 1)", f"torch.diagonal({x}, 0, 0, -1)",
        f"{x}.unfold({dim}, 2, {chance.choice((1, 2))})", f"{x}.split([1, {size - 1}], {dim})"))


def join(draft, x):
    chance, dim = draft.chance, dim_of(draft, x)
    y, rank = draft.like(x), draft.values[x].ndim
    more = [-1] * (rank + 1)
    more[dim % (rank + 1)] = 3
    return chance.choice((
        f"torch.cat([{x}, {y}], {dim})", f"torch.stack([{x}, {y}], {dim})",
        f"torch.cat([{y}, {x}, {x}], {dim})", f"torch.cat([{x}, {x}.flip({dim})], {dim})",
        f"torch.stack([{x}, {x} * 2, {y}], {chance.randrange(-rank - 1, rank + 1)})",
        f"{x}.repeat({[chance.choice((1, 1, 2, 3)) for _ in range(rank)]})",
        f"{x}.unsqueeze({dim}).expand({more})",
        f"{x}.repeat_interleave(2, {dim})", f"torch.tile({x}, (2,))",
        f"torch.cat([{x}, {x}.narrow({dim}, 0, 1)], {dim})"))


def reduce(draft, x):
    chance = draft.chance
    if draft.values[x].dtype == torch.bool:
        return chance.choice(("{}.any({})", "{}.all({})", "{}.sum({})")).format(x, dim_of(draft, x))
    kind = chance.random()
    if kind < 0.05 and len(draft.values[x].unique()) == draft.values[x].numel():
        return f"torch.topk({x}, 2, {dim_of(draft, x)})"  # equal elements may come in any order
    if kind < 0.3 and draft.values[x].is_floating_point():
        return chance.choice(ROWS).format(x, dim_of(draft, x))
    if kind < 0.6:
        return chance.choice(ORDER).format(x, dim_of(draft, x))
    dims, keep = some_dims(draft, x), chance.random() < 0.5
    call = chance.choice(("sum({d}, keepdim={k})", "mean({d}, keepdim={k})", "amax({d}, {k})",
                          "amin({d}, keepdim={k})", "sum()", "mean()", "max()", "min()",
                          "argmax()", "any()", "all()", "sum({d}, keepdim={k}, dtype=" + WIDE + ")",
                          "abs().amax({d}, keepdim={k})"))
    return f"{x}." + call.format(d=dims, k=keep)


def creation(draft, x):
    """Tensors that are made of numbers, of the sizes that another one has."""
    chance, size = draft.chance, dim_of(draft, x)
    return chance.choice((
        f"torch.zeros_like({x})", f"torch.ones_like({x}) * 2", f"torch.full_like({x}, 0.5)",
        f"torch.arange({x}.shape[{size}])", f"torch.arange({x}.shape[{size}], dtype={WIDE}) * 0.1",
        f"{x} + torch.arange({x}.shape[-1])", f"torch.eye({x}.shape[-1]) * {x}",
        f"torch.linspace(0, 1, {x}.shape[-1]) * {x}", f"{x}.new_ones({x}.shape) - {x}",
        f"{x} * {x}.shape[{size}]",
        f"{x}.sum() / {x}.numel()"))


def changed(draft, x):
    """What is written in place to a copy."""
    y, dim = draft.operand(x), dim_of(draft, x)
    return draft.chance.choice((
        f"{x}.clone().add_({y})", f"{x}.clone().mul_({y}).clamp_(-1, 1)", f"{x}.clone().fill_(0.5)",
        f"F.relu_({x}.clone())", f"{x}.clone().masked_fill_({x} > 0, 2)", f"{x}.clone().zero_()",
        f"torch.empty_like({x}).copy_({y})", f"{x}.clone().sub_({y}).neg_()",
        f"{x}.clone().index_put_((torch.tensor([0]),), {x}.select(0, -1))",
        f"torch.zeros_like({x}).index_copy_({dim}, torch.tensor([0]), {x}.narrow({dim}, 0, 1))",
        f"{x}.clone().index_add_({dim}, torch.tensor([0, 0]), {x}.narrow({dim}, 0, 2), alpha=2)",
        f"{x}.clone().transpose_(0, -1)", f"{x}.clone().unsqueeze_({dim}).squeeze_({dim})"))


def sized(draft, x):
    """What follows the sizes of a tensor when they change."""
    chance, sizes = draft.chance, draft.values[x].shape
    rank, dim = len(sizes), dim_of(draft, x) % max(len(sizes), 1)
    around, half = ":, " * dim, f"{x}.shape[{dim}] // 2"
    return chance.choice((
        f"{x}[{around}:{half}]", f"{x}[{around}{half}:]", f"{x}[{around}:-1] + {x}[{around}1:]",
        f"F.pad({x}, (0, {x}.shape[-1] % 3))", f"F.pad({x}, (0, -{x}.shape[-1] % 4))",
        f"{x}.reshape({x}.shape[0], -1)", f"{x}.reshape({x}.shape[0] * {x}.shape[1], -1)",
        f"{x}.view(-1, {x}.shape[-1])", f"torch.zeros({x}.shape[{dim}], 3) + {x}.mean()",
        f"torch.full(({x}.shape[{dim}],), {x}.shape[-1])",
        f"torch.arange({x}.shape[0])[:, None] < torch.arange({x}.shape[-1])",
        f"{x} / {x}.shape[{dim}]", f"{x}.mean({dim}) * {x}.shape[{dim}] ** 0.5",
        f"{x}.expand({[2] + [-1] * rank})", f"{x}[{around}{x}.shape[{dim}] - 1]",
        f"torch.cat([{x}, torch.ones({x}.shape[:{dim}] + (2,) + {x}.shape[{dim + 1}:])], {dim})",
        f"{x}.unflatten({dim}, (-1, 2)).flatten({dim}, {dim + 1})",
        f"{x}.masked_fill(torch.ones({x}.shape[-1], {x}.shape[-1]).tril() == 0, 0.0)",
        f"{x}.repeat_interleave({x}.shape[{dim}], {dim})", f"{x}.flatten(0, 1)",
        f"F.interpolate({x}, size=({x}.shape[-2] * 2, {x}.shape[-1] + 1))",
        f"F.adaptive_avg_pool2d({x}, ({x}.shape[-2] // 2, 1))"))
