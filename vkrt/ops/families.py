"""Which modules of this package declare which operators and portable kernels. Those of the device
are listed without namespace and overload, where one module has all of that name.

Written by `tools/operators.py --write`, for `vkrt.ops.registry`.
"""

DEVICE = {
    "arg_reduction": "argmax argmin aten.max.dim aten.min.dim aten::max.dim_max aten::min.dim_min",
    "attention": (
        "custom_sdpa rotary_sdpa_with_kv_cache sdpa_with_kv_cache update_cache "
        "update_cache_with_indices "),
    "attention_plain": "attention sdpa",
    "comparison": (
        "aten.bitwise_and.Tensor aten.bitwise_or.Tensor aten.bitwise_xor.Tensor "
        "aten::bitwise_and.Tensor_out aten::bitwise_or.Tensor_out aten::bitwise_xor.Tensor_out "
        "bitwise_not eq ge gt isinf isnan le logical_and logical_not logical_or logical_xor lt "
        "ne "),
    "composed": (
        "__lshift__ __rshift__ aten.bitwise_and.Scalar aten.bitwise_or.Scalar "
        "aten.bitwise_xor.Scalar aten.clamp.Tensor aten.copysign.Scalar aten.div.Scalar_mode "
        "aten.pow.Scalar aten.round.decimals aten::bitwise_and.Scalar_out "
        "aten::bitwise_or.Scalar_out aten::bitwise_xor.Scalar_out aten::clamp.Tensor_out "
        "aten::copysign.Scalar_out aten::div.Scalar_mode_out aten::pow.Scalar_out "
        "aten::round.decimals_out bitwise_left_shift bitwise_right_shift glu ldexp logit "
        "masked_fill "),
    "concat": (
        "_empty_dim_order arange cat copy copy_ empty empty_permuted empty_strided fill full "
        "full_like join_strips ones ones_like scalar_tensor select_scatter slice_scatter stack "
        "zeros zeros_like "),
    "convolution": "conv_with_clamp convolution",
    "convolution_q8": (
        "conv2d_q8ta_q8csw conv2d_q8ta_q8csw_q8to conv2d_q8ta_q8csw_q8to_dw q8ta_conv2d "
        "q8ta_conv2d_dw q8ta_conv2d_pw q8ta_conv2d_transposed "),
    "elementwise": (
        "_prelu_kernel _to_copy _to_dim_order_copy abs acos acosh add asin asinh atan atan2 "
        "atanh aten.clamp.default aten.copysign.Tensor aten.div.Scalar aten.div.Tensor "
        "aten.div.Tensor_mode aten.pow.Tensor_Scalar aten.pow.Tensor_Tensor aten.round.default "
        "aten::clamp.out aten::copysign.out aten::div.Scalar_out aten::div.out "
        "aten::div.out_mode aten::pow.Tensor_Scalar_out aten::pow.Tensor_Tensor_out "
        "aten::round.out binary_add_with_clamp binary_div_with_clamp binary_mul_with_clamp "
        "binary_sub_with_clamp ceil cos cosh elu erf erfinv exp exp2 expm1 floor floor_divide "
        "fmax fmin fmod gelu hardshrink hardsigmoid hardswish hardtanh hypot leaky_relu lgamma "
        "log log10 log1p log2 maximum minimum mish mul neg reciprocal relu remainder rsqrt rsub "
        "sigmoid sign silu silu_mul sin sinh softplus sqrt sub tan tanh trunc where "),
    "elementwise_q8": "add_q8ta_q8ta_q8to q8ta_add q8ta_pixel_shuffle q8ta_relu",
    "indexing": "embedding gather index index_select",
    "linear_int8": "_weight_int8pack_mm linear_dq8ca_q4gsw",
    "linear_q4": "embedding_q4gsw linear_q4gsw linear_qcs4w",
    "linear_q8": "linear_q8ta_q8csw q8ta_linear q8ta_linear_gemv",
    "matmul": "addmm bmm linear mm",
    "matmul_sums": "addbmm addmv",
    "normalization": (
        "_native_batch_norm_legit _native_batch_norm_legit_no_training native_group_norm "
        "native_layer_norm rms_norm "),
    "padding": (
        "constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
        "replication_pad2d replication_pad3d roll "),
    "parts": (
        "diagonal_copy narrow_copy select_copy slice_copy split_copy split_with_sizes_copy tril "
        "triu unbind_copy "),
    "pooling": "avg_pool2d max_pool2d max_pool2d_with_indices",
    "pooling_any": (
        "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "avg_pool1d avg_pool3d max_pool1d max_pool1d_with_indices max_pool3d "
        "max_pool3d_with_indices "),
    "quantization": (
        "quantized_decomposed.dequantize_per_tensor.default "
        "quantized_decomposed.quantize_per_tensor.default "
        "quantized_decomposed::dequantize_per_tensor.out "
        "quantized_decomposed::quantize_per_tensor.out "),
    "quantization_by_tensor": (
        "dequantize_affine dequantize_per_channel dequantize_per_token quantize_affine "
        "quantize_per_channel quantize_per_token "
        "quantized_decomposed.dequantize_per_tensor.tensor "
        "quantized_decomposed.quantize_per_tensor.tensor "
        "quantized_decomposed::dequantize_per_tensor.Tensor_out "
        "quantized_decomposed::quantize_per_tensor.Tensor_out "),
    "quantization_params": (
        "choose_qparams choose_qparams_affine choose_qparams_per_token_asymmetric "),
    "reduction": (
        "all amax amin any aten::max.unary_out aten::min.unary_out mean prod sum var var_mean "),
    "resample": "grid_priors grid_sampler_2d pixel_shuffle pixel_unshuffle",
    "rotary": "apply_rotary_emb apply_rotary_emb_hf apply_rotary_emb_interleaved",
    "scan": "cumprod cumsum",
    "scatter": "index_put index_put_ scatter scatter_add scatter_reduce",
    "search_sorted": "bucketize searchsorted",
    "shape": (
        "_clone_dim_order _unsafe_view alias_copy as_strided_copy clone detach_copy et_view "
        "expand_copy flip lift_fresh_copy permute permute_copy prepack repeat squeeze_copy "
        "t_copy transpose_copy unfold_copy unsqueeze_copy view view_copy "),
    "softmax": "_log_softmax _softmax safe_softmax",
    "sort": "sort topk",
    "upsample": (
        "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
        "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d "
        "upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d upsample_trilinear3d "),
}

HOST = {
    "host.bags": "aten::_embedding_bag_forward_only.out",
    "host.distances": (
        "aten::_cdist_forward.out aten::_pdist_forward.out aten::dist.out "
        "aten::masked_scatter.out aten::native_dropout.out "),
    "host.fourier": "aten::_fft_c2c.out aten::_fft_c2r.out aten::_fft_r2c.out",
    "host.indexing": (
        "aten::diagonal_scatter.out aten::index_put.out aten::scatter.src_out "
        "aten::scatter.value_out aten::scatter_add.out "),
    "host.nonzero": (
        "aten::masked_select.out aten::nonzero.out aten::nonzero_static.out "
        "aten::repeat_interleave.Tensor_out vkrt.mask_places.default "),
    "host.random": (
        "aten::bernoulli.out aten::rand.out aten::rand_like.out aten::randint.low_out "
        "aten::randint.out aten::randn.out aten::randn_like.out aten::randperm.out "
        "aten::uniform.out "),
    "host.recurrent": "llama::gated_delta_rule.out",
    "host.reduction": (
        "aten::cummax.out aten::cummin.out aten::cumprod.out aten::cumsum.out "
        "aten::logcumsumexp.out aten::sort.values aten::sort.values_stable aten::topk.values "),
    "host.selection": (
        "aten::kthvalue.values aten::median.dim_values aten::median.out aten::mode.values "
        "aten::nanmedian.dim_values aten::nanmedian.out "),
}
