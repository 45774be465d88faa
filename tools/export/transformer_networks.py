"""The networks of transformers that `architectures.py` exports.

They have random weights, and fewer or narrower layers than well-known ones.
"""

import sys
from functools import partial

import torch
import torch.nn as nn
from zoo import import_torchvision

IDS = 97  # words of the vocabularies


class Named(nn.Module):
    """A network that takes its inputs by name, and gives one result of several."""

    def __init__(self, network, *names, result=0, **constants):
        super().__init__()
        self.network = network
        self.names = names
        self.result = result
        self.constants = constants

    def forward(self, *inputs):
        return self.network(**dict(zip(self.names, inputs)), **self.constants)[self.result]


def pictures(side):
    return (torch.randn(1, 3, side, side),)


def words(count=12, below=IDS):
    return (torch.randint(3, below, (1, count)),)


# Tokens of a chunk of the gated delta rule
CHUNK = 8
TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": IDS, "max_position_embeddings": 64}
PICTURE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
           "intermediate_size": 64, "image_size": 64, "patch_size": 16}
# Two queries share a head of keys and values.
GROUPED = {**TEXT, "num_key_value_heads": 2}
# Two of four experts for each token, whose weights are gathered
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
           "experts_implementation": "batched_mm"}
# A layer of gated delta rule, and one of attention
DELTA = {**GROUPED, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_key_head_dim": 8, "linear_value_head_dim": 8,
         "layer_types": ["linear_attention", "full_attention"]}
ENCODERS = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
            "vocab_size": IDS, "max_position_embeddings": 64}
# The class, the names of its inputs (a text where nothing is said), and its configuration
TEXTS = {
    "bert": ("BertModel", TEXT),
    "roberta": ("RobertaModel", TEXT),
    "albert": ("AlbertModel", {**TEXT, "embedding_size": 16}),
    "electra": ("ElectraModel", {**TEXT, "embedding_size": 16}),
    "camembert": ("CamembertForSequenceClassification", TEXT),
    "distilbert": ("DistilBertModel", {"vocab_size": IDS, "dim": 32, "n_layers": 2, "n_heads": 4,
                                       "hidden_dim": 64}),
    "mobilebert": ("MobileBertModel", {**TEXT, "embedding_size": 16, "intra_bottleneck_size": 16,
                                       "true_hidden_size": 16}),
    "squeezebert": ("SqueezeBertModel", {**TEXT, "embedding_size": 32}),
    "deberta_v2": ("DebertaV2Model", {**TEXT, "relative_attention": True,
                                      "pos_att_type": ["c2p", "p2c"],
                                      "max_relative_positions": 16}),
    "mpnet": ("MPNetModel", TEXT),
    "nystromformer": ("NystromformerModel", {**TEXT, "num_landmarks": 4,
                                             "segment_means_seq_len": 12}),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": IDS, "n_embd": 32, "n_layer": 2, "n_head": 4,
                                 "n_positions": 64}),
    "gpt_neo": ("GPTNeoForCausalLM", {**TEXT, "num_layers": 2, "num_heads": 4, "window_size": 8,
                                      "attention_types": [[["global", "local"], 1]]}),
    "gpt_neox": ("GPTNeoXForCausalLM", TEXT),
    "opt": ("OPTForCausalLM", {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": ("BloomForCausalLM", {"vocab_size": IDS, "hidden_size": 32, "n_layer": 2,
                                   "n_head": 4}),
    "llama": ("LlamaForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "mistral": ("MistralForCausalLM", {**TEXT, "num_key_value_heads": 2, "sliding_window": 8}),
    "qwen2": ("Qwen2ForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "qwen3": ("Qwen3ForCausalLM", {**TEXT, "num_key_value_heads": 2, "head_dim": 8}),
    "gemma": ("GemmaForCausalLM", {**TEXT, "num_key_value_heads": 1, "head_dim": 8}),
    "gemma2": ("Gemma2ForCausalLM", {**TEXT, "num_key_value_heads": 2, "head_dim": 8}),
    "phi": ("PhiForCausalLM", TEXT),
    "stablelm": ("StableLmForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "olmo2": ("Olmo2ForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "mamba": ("MambaForCausalLM", {"vocab_size": IDS, "hidden_size": 32, "num_hidden_layers": 2,
                                   "state_size": 4}),
    "gemma3": ("Gemma3ForCausalLM", {
        **GROUPED, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"]}),
    "gemma4": ("Gemma4ForCausalLM", {
        **GROUPED, "head_dim": 8, "global_head_dim": 16, "sliding_window": 8,
        "vocab_size_per_layer_input": IDS, "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"]}),
    "granite": ("GraniteForCausalLM", {
        **GROUPED, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
        "attention_multiplier": 0.25, "logits_scaling": 8.0}),
    "smollm3": ("SmolLM3ForCausalLM", {**GROUPED, "no_rope_layers": [1, 0],
                                       "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 2}),
    "bitnet": ("BitNetForCausalLM", GROUPED),
    "cohere": ("CohereForCausalLM", {**GROUPED, "use_qk_norm": True}),
    "cohere2": ("Cohere2ForCausalLM", {
        **GROUPED, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}),
    "phi3": ("Phi3ForCausalLM", {**GROUPED, "pad_token_id": 0, "partial_rotary_factor": 0.75}),
    "glm4": ("Glm4ForCausalLM", {**GROUPED, "head_dim": 8, "pad_token_id": 0}),
    "exaone4": ("Exaone4ForCausalLM", {
        **GROUPED, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}),
    "modernbert": ("ModernBertModel", {
        **TEXT, "pad_token_id": 0, "local_attention": 8, "cls_token_id": 1, "sep_token_id": 2,
        "bos_token_id": 1, "eos_token_id": 2}),
    "lfm2": ("Lfm2ForCausalLM", {**GROUPED, "block_multiple_of": 8,
                                 "layer_types": ["conv", "full_attention"]}),
    "mamba2": ("Mamba2ForCausalLM", {
        "vocab_size": IDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8,
        "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8}),
    "bamba": ("BambaForCausalLM", {
        **GROUPED, "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 8,
        "mamba_d_state": 8, "mamba_chunk_size": 8}),
    "falcon_h1": ("FalconH1ForCausalLM", {
        **GROUPED, "head_dim": 8, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8,
        "mamba_d_state": 8, "mamba_chunk_size": 8}),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", {
        **TEXT, "num_key_value_heads": 1, "lru_width": 32, "attention_window_size": 8,
        "block_types": ["recurrent", "attention"]}),
    "qwen3_5": ("Qwen3_5ForCausalLM", {**DELTA, "intermediate_size": 64}),
    "qwen3_next": ("Qwen3NextForCausalLM", {**DELTA, **EXPERTS}),
    "mixtral": ("MixtralForCausalLM", {**GROUPED, "num_local_experts": 4,
                                       "experts_implementation": "batched_mm"}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {**GROUPED, "head_dim": 8, **EXPERTS}),
    "olmoe": ("OlmoeForCausalLM", {**GROUPED, **EXPERTS}),
    "gpt_oss": ("GptOssForCausalLM", {
        **GROUPED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
        "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"],
        "experts_implementation": "batched_mm"}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", {
        **TEXT, "num_key_value_heads": 4, "moe_intermediate_size": 16, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "q_lora_rank": 16,
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
        "first_k_dense_replace": 1, "experts_implementation": "batched_mm"}),
    "t5_encoder": ("T5EncoderModel", {"vocab_size": IDS, "d_model": 32, "d_kv": 8, "d_ff": 64,
                                      "num_layers": 2, "num_heads": 4}),
}


def chunk_by(kind, size):
    """Makes a network's gated delta rule, if it has one, take so many tokens at once: what it does
    is the same for any size, and the exporter unrolls a step for each token of a chunk (64)."""
    module, name = sys.modules[kind.__module__], "torch_chunk_gated_delta_rule"
    rule = getattr(module, name, None)
    if rule is not None:
        setattr(module, name, partial(getattr(rule, "func", rule), chunk_size=size))


def transformer(class_name, configuration, inputs, names, **more):
    import_torchvision()
    import transformers

    kind = getattr(transformers, class_name)
    chunk_by(kind, CHUNK)
    config = kind.config_class(**configuration)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Named(kind(config), *names, **more), inputs


TRANSFORMERS = {
    **{name: (lambda entry=entry: transformer(*entry, words(), ["input_ids"]))
       for name, entry in TEXTS.items()},
    "t5": lambda: transformer(
        "T5Model", {**TEXTS["t5_encoder"][1], "num_decoder_layers": 2}, (*words(), *words(6)),
        ["input_ids", "decoder_input_ids"]),
    "bart": lambda: transformer("BartModel", ENCODERS, (*words(), *words(6)),
                                ["input_ids", "decoder_input_ids"]),
    "whisper": lambda: transformer(
        "WhisperModel", {**ENCODERS, "num_mel_bins": 16, "max_source_positions": 20,
                         "max_target_positions": 20, "pad_token_id": 1},
        (torch.randn(1, 16, 40), *words(6)), ["input_features", "decoder_input_ids"]),
    "wav2vec2": lambda: transformer(
        "Wav2Vec2Model", {**TEXT, "conv_dim": (16, 16, 16), "conv_stride": (5, 4, 2),
                          "conv_kernel": (10, 8, 4), "num_conv_pos_embeddings": 16,
                          "num_conv_pos_embedding_groups": 4}, (torch.randn(1, 1600),),
        ["input_values"]),
    "audio_spectrogram": lambda: transformer(
        "ASTModel", {**PICTURE, "num_mel_bins": 32, "max_length": 64}, (torch.randn(1, 64, 32),),
        ["input_values"]),
    "vit_hf": lambda: transformer("ViTModel", PICTURE, pictures(64), ["pixel_values"]),
    "dinov2": lambda: transformer("Dinov2Model", PICTURE, pictures(64), ["pixel_values"]),
    "yolos": lambda: transformer(
        "YolosForObjectDetection", {**PICTURE, "image_size": [64, 64], "num_detection_tokens": 5},
        pictures(64), ["pixel_values"], result="pred_boxes"),
    "segformer": lambda: transformer(
        "SegformerForSemanticSegmentation",
        {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32], "decoder_hidden_size": 16,
         "num_attention_heads": [1, 2, 4, 8], "num_labels": 5},
        pictures(64), ["pixel_values"], result="logits"),
    "mobilevit_hf": lambda: transformer(
        "MobileViTModel", {"image_size": 64, "hidden_sizes": [32, 40, 48],
                           "neck_hidden_sizes": [8, 16, 16, 24, 32, 40, 80]}, pictures(64),
        ["pixel_values"]),
    "depth_anything": lambda: transformer(
        "DepthAnythingForDepthEstimation",
        {"backbone_config": {"model_type": "dinov2", **PICTURE, "patch_size": 16,
                             "out_features": ["stage1", "stage2"], "reshape_hidden_states": False},
         "reassemble_hidden_size": 32, "patch_size": 16, "reassemble_factors": [4, 2],
         "neck_hidden_sizes": [16, 16], "fusion_hidden_size": 16, "head_hidden_size": 8},
        pictures(64), ["pixel_values"], result="predicted_depth"),
    "dinov3": lambda: transformer("DINOv3ViTModel", PICTURE, pictures(64), ["pixel_values"]),
    "dinov3_convnext": lambda: transformer(
        "DINOv3ConvNextModel", {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]},
        pictures(64), ["pixel_values"]),
    "siglip": lambda: transformer("SiglipVisionModel", PICTURE, pictures(64), ["pixel_values"]),
    "smolvlm": lambda: transformer(
        "SmolVLMForConditionalGeneration",
        {"vision_config": PICTURE, "text_config": {"model_type": "llama", **GROUPED},
         "image_token_id": 5, "scale_factor": 2, "pad_token_id": 0},
        (torch.tensor([[3, 5, 5, 5, 5, 7, 9]]), torch.randn(1, 1, 3, 64, 64)),
        ["input_ids", "pixel_values"]),
    "rt_detr": lambda: transformer(
        "RTDetrForObjectDetection",
        {"backbone_config": {"model_type": "rt_detr_resnet", "embedding_size": 16,
                             "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1],
                             "out_features": ["stage2", "stage3", "stage4"]},
         "encoder_in_channels": [24, 32, 40], "encoder_hidden_dim": 32, "d_model": 32,
         "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "decoder_layers": 2, "num_queries": 10,
         "decoder_in_channels": [32, 32, 32], "num_labels": 5,
         "anchor_image_size": [64, 64]},
        pictures(64), ["pixel_values"], result="pred_boxes"),
    "encodec": lambda: transformer(
        "EncodecModel", {"num_filters": 4, "hidden_size": 16, "codebook_size": 16,
                         "codebook_dim": 16, "upsampling_ratios": [4, 2]},
        (torch.randn(1, 1, 160),), ["input_values"], result=1),
    "dac": lambda: transformer(
        "DacModel", {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4],
                     "decoder_hidden_size": 32, "upsampling_ratios": [4, 2], "n_codebooks": 3,
                     "codebook_size": 16, "codebook_dim": 4}, (torch.randn(1, 1, 160),),
        ["input_values"], result=1),
    "wav2vec2_conformer": lambda: transformer(
        "Wav2Vec2ConformerModel", {
            **TEXT, "conv_dim": (16, 16, 16), "conv_stride": (5, 4, 2), "conv_kernel": (10, 8, 4),
            "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
            "conv_depthwise_kernel_size": 7}, (torch.randn(1, 1600),), ["input_values"]),
    "wav2vec2_bert": lambda: transformer(
        "Wav2Vec2BertModel", {**TEXT, "feature_projection_input_dim": 16,
                              "conv_depthwise_kernel_size": 7}, (torch.randn(1, 24, 16),),
        ["input_features"]),
    "moonshine": lambda: transformer(
        "MoonshineModel", {**GROUPED, **{
            f"{half}_{name}": count for half in ("encoder", "decoder") for name, count in (
                ("num_hidden_layers", 2), ("num_attention_heads", 4),
                ("num_key_value_heads", 4))}},
        (torch.randn(1, 3200), *words(6)), ["input_values", "decoder_input_ids"]),
    "clip": lambda: transformer(
        "CLIPModel", {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": PICTURE,
                      "projection_dim": 16}, (*words(), *pictures(64)),
        ["input_ids", "pixel_values"], result="logits_per_image"),
}
