#!/usr/bin/env python3
"""Make the language models among the test programs of tests/models/.

    python tools/export/language.py [NAME...] [--out tests/models]

All but one are tiny Llama transformers with random weights, as ExecuTorch's own exporter makes
them: with caches of keys and values in the delegate. The NAME.npz has the tokens and positions
step0_in0, step0_in1, ... and the logits step0_out0, ... of runs one after another, in which prompts
and single tokens take turns.

llama: tokens of any number; methods that say what a caller has to know.
llama_static: one token a run.
recurrent_text: one token a run, of a model that keeps a state of the last token alone.

Needs the same as tools/export/models.py.
"""

import copy
import gc
from contextlib import contextmanager

import torch
from exporting import arrays_of, lower, run_eager, run_in_turn, run_tool
from torch import nn

TINY = dict(dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=61, hidden_dim=72)
CONTEXT = 24


class LastLogits(nn.Module):
    """A transformer of ExecuTorch's as a method of tokens and their position."""

    def __init__(self, transformer):
        super().__init__()
        self.transformer = transformer

    def forward(self, tokens, position):
        result = self.transformer(tokens, {"input_pos": position})
        return result[0] if isinstance(result, tuple) else result


class RecurrentText(nn.Module):
    """A model that reads tokens one by one and keeps a state of the last one, in the place of a
    cache; a text begins at position 0."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TINY["vocab_size"], 16)
        self.inner, self.head = nn.Linear(16, 16), nn.Linear(16, TINY["vocab_size"])
        self.register_buffer("state", torch.zeros(1, 16))

    def forward(self, tokens, position):
        known = self.state * (position > 0)
        state = torch.tanh(2 * self.inner(known) + self.embedding(tokens[:, 0]))
        self.state.copy_(state)
        return self.head(state)


def transformer(config, context, dynamic=True):
    """A transformer with random weights, its cache as ExecuTorch's operator wants it.

    Args:
        config: what `ModelArgs` takes beside the lengths and the kind of cache.
        context: tokens that the cache holds.
    """
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    made = construct_transformer(ModelArgs(
        max_seq_len=context, max_context_len=context, use_kv_cache=True,
        use_sdpa_with_kv_cache_op=True, enable_dynamic_shape=dynamic, generate_full_logits=False,
        **config)).eval()
    for parameter in made.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.1)
    return made


def with_operators(made):
    """The transformer with ExecuTorch's operators for caches and attention."""
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (declares the operators)
    from executorch.examples.models.llama.source_transformation.custom_kv_cache import (
        replace_kv_cache_with_custom_kv_cache,
    )
    from executorch.examples.models.llama.source_transformation.sdpa import (
        replace_sdpa_with_custom_op,
    )

    return LastLogits(replace_kv_cache_with_custom_kv_cache(replace_sdpa_with_custom_op(made)))


@contextmanager
def weights_once():
    """ExecuTorch copies a delegate's program before it makes Vulkan's of it, tensors included. Its
    passes put new tensors in the place of those that they change, so that they may share them."""
    from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend

    def copy_program(_backend, program, _specs):
        tensors = [*program.state_dict.values(), *program.constants.values()]
        return copy.deepcopy(program, {id(tensor): tensor for tensor in tensors})

    VulkanBackend.copy_exported_program_for_preprocess = classmethod(copy_program)
    try:
        yield
    finally:
        del VulkanBackend.copy_exported_program_for_preprocess


def language_program(module, context, dynamic=True, constants=None, force_fp16=False):
    """Export a `LastLogits` for the Vulkan backend, to a program of ExecuTorch's that can be
    written.

    Args:
        constants: values of further methods by their names, such as {"get_max_seq_len": 128}.
        force_fp16: whether constants and caches are fp16 in the file, and activations may be.
    """
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from executorch.extension.llm.export.export_passes import RemoveRedundantTransposes
    from torch.export import Dim
    from torch.nn.attention import SDPBackend, sdpa_kernel

    inputs = (torch.zeros(1, 4 if dynamic else 1, dtype=torch.long),
              torch.zeros(1, dtype=torch.long))
    shapes = ({1: Dim("tokens", min=1, max=context - 1)}, {}) if dynamic else None

    def decomposed(module):
        program = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=True)
        gc.collect()  # what tracing leaves behind holds copies of all weights
        return program.run_decompositions({})

    with torch.no_grad(), sdpa_kernel([SDPBackend.MATH]):
        # The steps that ExecuTorch's exporter of language models takes.
        program = decomposed(RemoveRedundantTransposes()(decomposed(module).module()).graph_module)
    options = {name: True for name, wanted in (("require_dynamic_shapes", dynamic),
                                               ("force_fp16", force_fp16)) if wanted}
    with weights_once():
        return to_edge_transform_and_lower(
            program, partitioner=[VulkanPartitioner(options)], constant_methods=constants or {},
            compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch()


def lower_language(*arguments):
    """The bytes of the .pte file of a `language_program`."""
    return language_program(*arguments).buffer


def make(name):
    """The program of a name, and the arrays of eager PyTorch's runs."""
    if name == "recurrent_text":
        runs = [(torch.randint(0, TINY["vocab_size"], (1, 1)), torch.tensor([position]))
                for position in range(5)]
        module = RecurrentText().eval()
        pte = lower(module, runs[0], alias_buffer_mutations=True)
        return pte, run_in_turn(module, runs, "step")
    dynamic = name == "llama"
    module = with_operators(transformer(TINY, CONTEXT, dynamic))
    arrays, position = {}, 0
    for step, count in enumerate((5, 1, 1, 3, 1) if dynamic else (1, 1, 1)):
        inputs = (torch.randint(0, TINY["vocab_size"], (1, count)), torch.tensor([position]))
        arrays |= arrays_of(inputs, run_eager(module, inputs), f"step{step}_")
        position += count
    constants = {"get_max_seq_len": CONTEXT, "get_max_context_len": CONTEXT, "use_kv_cache": True,
                 "get_vocab_size": TINY["vocab_size"], "get_bos_id": 1, "get_eos_ids": [2, 3]}
    # Runs change the caches, which are to be zero in the program.
    module = with_operators(_as_before(module, dynamic))
    return lower_language(module, CONTEXT, dynamic, constants if dynamic else None), arrays


def _as_before(module, dynamic):
    """A transformer with the weights of another and an empty cache."""
    made = transformer(TINY, CONTEXT, dynamic)
    weights = {name: value for name, value in module.transformer.state_dict().items()
               if "cache" not in name}
    made.load_state_dict(weights, strict=False)
    return made


if __name__ == "__main__":
    run_tool(__doc__.splitlines()[0], ("llama", "llama_static", "recurrent_text"), make,
             "tests/models")
