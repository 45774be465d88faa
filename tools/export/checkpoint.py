#!/usr/bin/env python3
"""Export a language model from a checkpoint folder, as Hugging Face's `transformers` writes it.

    python tools/export/checkpoint.py FOLDER OUT.pte [--quantize 4w] [--group 32] [--context 2048]

FOLDER has config.json and *.safetensors: Llama, SmolLM2, Qwen2, Qwen2.5 and Qwen3 models (those of
`model_type` llama, qwen2 and qwen3). The program takes tokens int64 [1, T] and a position int64
[1], keeps its caches on the device, and gives the logits of the last token. Then, with the files of
the tokenizer beside it or named:

    vkrt generate OUT.pte --tokenizer FOLDER --prompt "Once upon a time"

--quantize   none: fp32 (default). 4w: 4-bit weights in groups. 8da4w: the same, with inputs that
             are quantized to 8 bits as they come
--embedding  also 4-bit weights for the embedding, of the same groups
--context    tokens that the caches hold, and the longest text

Needs the same as tools/export/models.py, and the package `safetensors`.
"""

import argparse
import json
import re
from pathlib import Path

import torch
from language import lower_language, transformer, with_operators

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


def weights_of(folder, head_dim):
    """The tensors of a checkpoint under ExecuTorch's names, in fp32."""
    from safetensors.torch import load_file

    result = {}
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise SystemExit(f"{folder}: no *.safetensors")
    for file in files:
        for name, tensor in load_file(file).items():
            layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
            known = NAMES.get(layer[2] if layer else name)
            if known is None:
                if name.endswith("rotary_emb.inv_freq"):
                    continue
                raise SystemExit(f"{file}: no place for the tensor {name}")
            tensor = tensor.to(torch.float32)
            if known.startswith(TURNED):
                tensor = turned(tensor, head_dim)
            result[f"layers.{layer[1]}.{known}" if layer else known] = tensor
    result.setdefault("output.weight", result["tok_embeddings.weight"])
    return result


def quantized(model, options):
    """The transformer with the weights that were asked for."""
    from executorch.examples.models.llama.source_transformation.quantize import (
        EmbeddingQuantHandler,
        quantize,
    )

    if options.embedding:
        model = EmbeddingQuantHandler(model, bitwidth=4, group_size=options.group,
                                      packed=True).quantized_model()
    if options.quantize != "none":
        from torchao.utils import unwrap_tensor_subclass

        model = unwrap_tensor_subclass(quantize(model, options.quantize,
                                                group_size=options.group))
    return model


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
    parser.add_argument("--quantize", choices=("none", "4w", "8da4w"), default="none")
    parser.add_argument("--embedding", action="store_true")
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--context", type=int, default=2048)
    options = parser.parse_args()
    config, found = config_of(options.folder)
    model = transformer(config, options.context)
    missing, unknown = model.load_state_dict(weights_of(options.folder, config["head_dim"]),
                                             strict=False)
    missing = [name for name in missing if "cache" not in name and "freqs" not in name
               and "mask" not in name]
    if missing or unknown:
        raise SystemExit(f"{options.folder}: without {missing}, and with {unknown} too many")
    constants = {"get_max_seq_len": options.context, "get_max_context_len": options.context,
                 "get_vocab_size": config["vocab_size"], "get_n_layers": config["n_layers"],
                 "use_kv_cache": True, "get_eos_ids": ends_of(options.folder, found)}
    with torch.no_grad():
        program = lower_language(with_operators(quantized(model, options)), options.context,
                                 constants=constants)
    options.out.write_bytes(program)
    print(f"{options.out}: {len(program)} bytes")


if __name__ == "__main__":
    main()
