"""Weights of language models in 4 and 8 bits, layer by layer, for checkpoint.py and others.

The numbers are those that ExecuTorch's own exporter makes of the whole model. Here a matrix is
quantized in blocks of rows, which do not depend on each other: what the search for scales takes is
then a multiple of a block and not of the vocabulary, and blocks that stay in the processor's
caches are done in a tenth of the time.
"""

from contextlib import contextmanager

import torch
from torch import nn

# 4w: 4-bit weights in groups. 8w: 8-bit weights, a scale for each output. 8da4w: as 4w, with inputs
# that are quantized to 8 bits as they come.
QUANTIZATIONS = ("none", "4w", "8w", "8da4w")
# Elements of a block of rows
BLOCK = 1 << 18


def blocks_of(weight):
    """A matrix in blocks of rows."""
    return weight.detach().split(max(1, BLOCK // weight.shape[1]))


@contextmanager
def one_thread():
    """PyTorch's steps in one thread. On blocks, threads wait for each other longer than they work:
    20 times the processor's time on a machine that has something else to do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_groups(weight, quantize, group):
    """4-bit numbers of a matrix, with a scale for each ``group`` of a row, in torchao's tensor.

    Args:
        quantize: "4w" or "8da4w"; the second one makes a tensor that says so of its inputs.
    """
    from executorch.examples.models.llama.source_transformation import quantize as executorch

    if weight.shape[1] % group:
        raise SystemExit(f"a weight of {tuple(weight.shape)} has no whole groups of {group} in a "
                         f"row; choose another --group")
    parts = []
    with one_thread():
        for rows in blocks_of(weight):
            layer = nn.Linear(rows.shape[1], len(rows), bias=False, device="meta")
            layer.weight = nn.Parameter(rows, requires_grad=False)
            parts.append(executorch.quantize(layer, quantize, group_size=group).weight)
    first = parts[0]
    return type(first)(
        *(torch.cat([getattr(part, name) for part in parts]) for name in first.tensor_data_names),
        *(getattr(first, name) for name in first.tensor_attribute_names))


class Linear8(nn.Module):
    """A linear layer with 8-bit weights and a scale for each output, in the form that ExecuTorch's
    exporter makes one Vulkan operator of (its `vulkan_8w`).

    Args:
        layer: an `nn.Linear` with weights of floats.
    """

    def __init__(self, layer):
        from executorch.examples.models.llama.source_transformation import quantize as executorch

        super().__init__()
        with one_thread():
            numbers, scales, _ = zip(*(
                executorch.dynamically_quantize_per_channel(rows, -128, 127, torch.int8,
                                                            scales_dtype=torch.float32)
                for rows in blocks_of(layer.weight)))
        self.register_buffer("weight", torch.cat(numbers))
        self.register_buffer("scales", torch.cat(scales)[:, 0])
        self.register_buffer("zeros", torch.zeros(len(self.scales), dtype=torch.int64))
        self.bias = layer.bias

    def forward(self, x):
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -128, 127, torch.int8)
        return nn.functional.linear(x, weight, self.bias)


def embedding_in_groups(layer, group):
    """ExecuTorch's embedding of 4-bit numbers, two in a byte, of an `nn.Embedding`."""
    from executorch.examples.models.llama.source_transformation import quantize as executorch

    found = in_groups(layer.weight, "4w", group)
    made = executorch.QuantizedGroupEmbedding("meta", *found.shape, group, torch.float32,
                                              packed=True, bitwidth=4)
    numbers = found.qdata.add(8).view(torch.uint8)
    made.weight, made.scales = numbers[:, ::2] << 4 | numbers[:, 1::2], found.scale.squeeze(-1)
    return made


def quantized_layer(layer, options):
    """A linear layer or an embedding with the weights that were asked for; other modules, and
    what shall keep its floats, are returned as they are.

    Args:
        options: `quantize`, one of QUANTIZATIONS, for linear layers; whether the `embedding` has
            4-bit weights, too; elements of a `group`.
    """
    if isinstance(layer, nn.Embedding) and options.embedding:
        return embedding_in_groups(layer, options.group)
    if isinstance(layer, nn.Linear) and options.quantize == "8w":
        return Linear8(layer)
    if isinstance(layer, nn.Linear) and options.quantize != "none":
        layer.weight = nn.Parameter(in_groups(layer.weight, options.quantize, options.group),
                                    requires_grad=False)
    return layer


def exportable(model):
    """The model with torchao's tensors as numbers and scales, which `torch.export` takes."""
    from torchao.utils import unwrap_tensor_subclass

    return unwrap_tensor_subclass(model)


def quantized(model, options):
    """A model with the weights that were asked for, which `torch.export` takes."""
    for name, layer in list(model.named_modules()):
        if name:
            model.set_submodule(name, quantized_layer(layer, options))
    return exportable(model)
