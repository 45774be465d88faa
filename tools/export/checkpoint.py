#!/usr/bin/env python3
"""Export a language model from a checkpoint folder, as Hugging Face's `transformers` writes it.

    python tools/export/checkpoint.py FOLDER OUT.pte [--quantize 4w] [--embedding] [--half]

FOLDER has config.json and *.safetensors: Llama, SmolLM2, Qwen2, Qwen2.5 and Qwen3 models (those of
`model_type` llama, qwen2 and qwen3). The program takes tokens int64 [1, T] and a position int64
[1], keeps its caches on the device, and gives the logits of the last token. Then, with the files of
the tokenizer beside it or named:

    vkrt generate OUT.pte --tokenizer FOLDER --prompt "Once upon a time"

--quantize   none: floats (default). 4w: 4-bit weights in groups. 8w: 8-bit weights, a scale for
             each row. 8da4w: 4-bit weights, and inputs that are quantized to 8 bits as they come
--group      elements of a group (32)
--embedding  also 4-bit weights for the embedding, in the same groups
--half       floats, scales and caches in fp16 instead of fp32
--context    tokens that the caches hold, and the longest text (2048)

Needs the same as tools/export/models.py, and the package `safetensors`.
"""

import argparse
import json
import re
from pathlib import Path

import torch
from language import language_program, transformer, with_operators
from quantizing import QUANTIZATIONS, exportable, quantized_layer
from torch import nn

# Names of a checkpoint's tensors, and of the same in ExecuTorch's transformer
NAMES = {
    "model.embed_tokens.weight": "tok_embeddings.weight",
    "model.norm.weight": "norm.weight",
    "lm_head.weight": "output.weight",
    "input_layernorm.weight": "attention_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_norm.weight": "attention.q_norm_fn.weight",
    "self_attn.k_norm.weight": "attention.k_norm_fn.weight",
    **{f"self_attn.{name}_proj.{kind}": f"attention.w{name}.{kind}"
       for name in "qkvo" for kind in ("weight", "bias")},
    "mlp.gate_proj.weight": "feed_forward.w1.weight",
    "mlp.down_proj.weight": "feed_forward.w2.weight",
    "mlp.up_proj.weight": "feed_forward.w3.weight",
}
TURNED = ("attention.wq.", "attention.wk.", "attention.q_norm_fn.", "attention.k_norm_fn.")


def config_of(folder):
    """What ExecuTorch's `ModelArgs` takes, from config.json."""
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = found.get("model_type")
    if kind not in ("llama", "qwen2", "qwen3"):
        raise SystemExit(f"{folder}: a model of type {kind!r}; expected llama, qwen2 or qwen3")
    heads = found["num_attention_heads"]
    config = dict(
        dim=found["hidden_size"], n_layers=found["num_hidden_layers"], n_heads=heads,
        n_kv_heads=found.get("num_key_value_heads", heads), vocab_size=found["vocab_size"],
        hidden_dim=found["intermediate_size"], norm_eps=found["rms_norm_eps"],
        head_dim=found.get("head_dim") or found["hidden_size"] // heads,
        attention_qkv_bias=kind == "qwen2")
    rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
    config["rope_freq_base"] = found.get("rope_theta") or rope.get("rope_theta", 10000.0)
    if kind == "qwen3":
        config |= dict(use_qk_norm=True, qk_norm_before_rope=True)
    way = rope.get("rope_type", rope.get("type", "default"))
    if way == "llama3":
        if (rope["low_freq_factor"], rope["original_max_position_embeddings"]) != (1.0, 8192):
            raise SystemExit(f"{folder}: positions scaled by {rope}; ExecuTorch's are for 8192")
        config |= dict(use_scaled_rope=True, rope_scale_factor=int(rope["factor"]),
                       high_freq_factor=int(rope["high_freq_factor"]))
    elif way != "default":
        raise SystemExit(f"{folder}: positions scaled by {way!r}; expected llama3 or none")
    return config, found


def turned(tensor, head_dim):
    """Rows of queries, keys or their norms with the two halves of a head one element after the
    other: the checkpoint turns halves, ExecuTorch's transformer neighbours."""
    heads = tensor.shape[0] // head_dim
    return tensor.view(heads, 2, head_dim // 2, -1).transpose(1, 2).reshape(tensor.shape)


def places_of(folder):
    """Where a checkpoint has its tensors: (file, name in it) -> their names in ExecuTorch's
    transformer, two of an embedding that is the last layer, too."""
    from safetensors import safe_open

    result = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            names = list(tensors.keys())
        for name in names:
            layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
            known = NAMES.get(layer[2] if layer else name)
            if known is not None:
                result[file, name] = [f"layers.{layer[1]}.{known}" if layer else known]
            elif not name.endswith("rotary_emb.inv_freq"):
                raise SystemExit(f"{file}: no place for the tensor {name}")
    if not result:
        raise SystemExit(f"{folder}: no tensors in *.safetensors")
    if ["output.weight"] not in result.values():
        for places in result.values():
            if places == ["tok_embeddings.weight"]:
                places.append("output.weight")
    return result


def without_weights(config, context):
    """A transformer whose parameters have sizes and no memory."""
    from torch.nn.modules.module import register_module_parameter_registration_hook

    hook = register_module_parameter_registration_hook(
        lambda _module, _name, parameter: nn.Parameter(parameter.to("meta")))
    try:
        return transformer(config, context)
    finally:
        hook.remove()


def loaded(folder, config, options):
    """The transformer of a checkpoint, in fp32 or with the weights that were asked for.

    Tensors come one by one, and the floats of one that is quantized are gone before the next.
    """
    from safetensors import safe_open

    model, places = without_weights(config, options.context), places_of(folder)
    wanted = {name for name, _ in model.named_parameters()}
    found = {name for names in places.values() for name in names}
    if wanted != found:
        raise SystemExit(f"{folder}: without {sorted(wanted - found)}, and with "
                         f"{sorted(found - wanted)} too many")
    for (file, name), names in places.items():
        with safe_open(file, "pt") as tensors:
            tensor = tensors.get_tensor(name).to(torch.float32)
        for place in names:
            path, _, kind = place.rpartition(".")
            layer = model.get_submodule(path)
            if place.split(".", 2)[-1].startswith(TURNED):
                tensor = turned(tensor, config["head_dim"])
            if tensor.shape != getattr(layer, kind).shape:
                raise SystemExit(f"{file}: {name} has the sizes {tuple(tensor.shape)}; expected "
                                 f"{tuple(getattr(layer, kind).shape)}")
            setattr(layer, kind, nn.Parameter(tensor, requires_grad=False))
            if kind == "weight":
                model.set_submodule(path, quantized_layer(layer, options))
    return exportable(model)


def ends_of(folder, config):
    """Ids of the tokens that end a text."""
    file = folder / "generation_config.json"
    said = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    ends = said.get("eos_token_id", config.get("eos_token_id"))
    return [ends] if isinstance(ends, int) else ends or []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--quantize", choices=QUANTIZATIONS, default="none")
    parser.add_argument("--embedding", action="store_true")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--context", type=int, default=2048)
    options = parser.parse_args()
    config, found = config_of(options.folder)
    constants = {"get_max_seq_len": options.context, "get_max_context_len": options.context,
                 "get_vocab_size": config["vocab_size"], "get_n_layers": config["n_layers"],
                 "use_kv_cache": True, "get_eos_ids": ends_of(options.folder, found)}
    with torch.no_grad():
        program = language_program(with_operators(loaded(options.folder, config, options)),
                                   options.context, constants=constants, force_fp16=options.half)
    with options.out.open("wb") as file:
        program.write_to_file(file)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
