"""Numbers and operators as messages name them."""

from __future__ import annotations

# What the user's model has where the exporter's fusion writes an operator of its own, by the prefix
# of that operator's name, which is in no model. The longest prefix that fits counts.
ORIGINS = {
    "et_vk.apply_rotary_emb": "a rotary embedding of queries and keys: q * cos + rotated q * sin",
    "et_vk.apply_rotary_emb_hf": "a rotary embedding of queries and keys as Hugging Face's models "
                                 "do it: q * cos + rotate_half(q) * sin",
    "et_vk.apply_rotary_emb_interleaved": "a rotary embedding: x times complex frequencies, real "
                                          "and imaginary parts side by side",
    "et_vk.add_q8ta_q8ta_q8to": "a sum of 8-bit tensors",
    "et_vk.binary_": "arithmetic of two tensors and the clamp, relu or hardtanh behind it",
    "et_vk.conv2d_q8ta_q8csw": "a convolution with 8-bit weights and input",
    "et_vk.conv_with_clamp": "a convolution and the clamp, relu or hardtanh behind it",
    "et_vk.embedding_q4gsw": "an embedding with 4-bit weights",
    "et_vk.linear_dq8ca_q4gsw": "a linear layer with 4-bit weights in groups, its input quantized "
                                "to 8 bits as it runs",
    "et_vk.linear_q4gsw": "a linear layer with 4-bit weights in groups",
    "et_vk.linear_q8ta_q8csw": "a linear layer with 8-bit weights and input",
    "et_vk.linear_qcs4w": "a linear layer with 4-bit weights, one scale for each channel",
    "et_vk.q8ta_add": "a sum of 8-bit tensors",
    "et_vk.q8ta_conv2d": "a convolution with 8-bit weights, input and output",
    "et_vk.q8ta_linear": "a linear layer with 8-bit weights, input and output",
    "et_vk.q8ta_pixel_shuffle": "pixel_shuffle of an 8-bit tensor",
    "et_vk.q8ta_relu": "relu of an 8-bit tensor",
    "et_vk.rms_norm": "an RMS norm: x * rsqrt(mean(x * x) + eps) * weight",
    "et_vk.sdpa": "scaled dot-product attention",
    "et_vk.select_as_symint": "a number read from an input: x[i].item()",
    "sdpa_with_kv_cache": "attention with a cache of keys and values (llama.sdpa_with_kv_cache)",
    "update_cache": "a write to a cache of keys or values (llama.update_cache)",
    "quantized_decomposed.quantize": "the border of what was quantized",
    "quantized_decomposed.dequantize": "the border of what was quantized",
    "aten._weight_int8pack_mm": "a linear layer with 8-bit weights",
}


def counted(count: int, thing: str) -> str:
    """A number and what it counts: "1 kernel", "2 kernels"."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def origin(op: str) -> str:
    """What the model has for an operator that only the exporter makes, or ""."""
    fits = [name for name in ORIGINS if op.startswith(name)]
    return ORIGINS[max(fits, key=len)] if fits else ""


def listed(missing: dict[str, int]) -> str:
    """Operators with their counts, and with the `origin` of those that no model has."""
    return ", ".join(f"{op} x{count}" + (f" ({origin(op)})" if origin(op) else "")
                     for op, count in sorted(missing.items()))
