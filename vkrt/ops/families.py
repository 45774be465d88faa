"""Which modules of this package declare which operators, and which portable kernels.

Written by `tools/operators.py --write`, for `vkrt.ops.registry`.
"""

OPERATORS = {
    "arg_reduction": (
        "aten.argmax.default aten.argmin.default aten.max.dim aten.min.dim "),
    "attention": (
        "llama.custom_sdpa.default llama.update_cache_with_indices.default "
        "sdpa_with_kv_cache.default update_cache.default vkrt.rotary_sdpa_with_kv_cache.default "),
    "attention_plain": (
        "et_vk.sdpa.default vkrt.attention.default "),
    "comparison": (
        "aten.bitwise_and.Tensor aten.bitwise_not.default aten.bitwise_or.Tensor "
        "aten.bitwise_xor.Tensor aten.eq.Scalar aten.eq.Tensor aten.ge.Scalar aten.ge.Tensor "
        "aten.gt.Scalar aten.gt.Tensor aten.isinf.default aten.isnan.default aten.le.Scalar "
        "aten.le.Tensor aten.logical_and.default aten.logical_not.default "
        "aten.logical_or.default aten.logical_xor.default aten.lt.Scalar aten.lt.Tensor "
        "aten.ne.Scalar aten.ne.Tensor "),
    "composed": (
        "aten.bitwise_and.Scalar aten.bitwise_left_shift.Tensor "
        "aten.bitwise_left_shift.Tensor_Scalar aten.bitwise_or.Scalar "
        "aten.bitwise_right_shift.Tensor aten.bitwise_right_shift.Tensor_Scalar "
        "aten.bitwise_xor.Scalar aten.clamp.Tensor aten.copysign.Scalar aten.div.Scalar_mode "
        "aten.glu.default aten.ldexp.Tensor aten.logit.default aten.masked_fill.Scalar "
        "aten.pow.Scalar aten.round.decimals "),
    "concat": (
        "aten.arange.start_step aten.cat.default aten.copy.default aten.full.default "
        "aten.full_like.default aten.ones.default aten.ones_like.default "
        "aten.scalar_tensor.default aten.select_scatter.default aten.slice_scatter.default "
        "aten.stack.default aten.zeros.default aten.zeros_like.default vkrt.join_strips.default "),
    "convolution": (
        "aten.convolution.default et_vk.conv_with_clamp.default "),
    "convolution_q8": (
        "et_vk.conv2d_q8ta_q8csw.default et_vk.conv2d_q8ta_q8csw_q8to.default "
        "et_vk.conv2d_q8ta_q8csw_q8to_dw.default et_vk.q8ta_conv2d.default "
        "et_vk.q8ta_conv2d_dw.default et_vk.q8ta_conv2d_pw.default "
        "et_vk.q8ta_conv2d_transposed.default "),
    "elementwise": (
        "aten._prelu_kernel.default aten._to_copy.default aten.abs.default aten.acos.default "
        "aten.acosh.default aten.add.Scalar aten.add.Tensor aten.asin.default "
        "aten.asinh.default aten.atan.default aten.atan2.default aten.atanh.default "
        "aten.ceil.default aten.clamp.default aten.copysign.Tensor aten.cos.default "
        "aten.cosh.default aten.div.Scalar aten.div.Tensor aten.div.Tensor_mode "
        "aten.elu.default aten.erf.default aten.erfinv.default aten.exp.default "
        "aten.exp2.default aten.expm1.default aten.floor.default aten.floor_divide.default "
        "aten.fmax.default aten.fmin.default aten.fmod.Scalar aten.fmod.Tensor "
        "aten.gelu.default aten.hardshrink.default aten.hardsigmoid.default "
        "aten.hardswish.default aten.hardtanh.default aten.hypot.default "
        "aten.leaky_relu.default aten.lgamma.default aten.log.default aten.log10.default "
        "aten.log1p.default aten.log2.default aten.maximum.default aten.minimum.default "
        "aten.mish.default aten.mul.Scalar aten.mul.Tensor aten.neg.default "
        "aten.pow.Tensor_Scalar aten.pow.Tensor_Tensor aten.reciprocal.default "
        "aten.relu.default aten.remainder.Scalar aten.remainder.Tensor aten.round.default "
        "aten.rsqrt.default aten.rsub.Scalar aten.sigmoid.default aten.sign.default "
        "aten.silu.default aten.sin.default aten.sinh.default aten.softplus.default "
        "aten.sqrt.default aten.sub.Scalar aten.sub.Tensor aten.tan.default aten.tanh.default "
        "aten.trunc.default aten.where.self dim_order_ops._to_dim_order_copy.default "
        "et_vk.binary_add_with_clamp.default et_vk.binary_div_with_clamp.default "
        "et_vk.binary_mul_with_clamp.default et_vk.binary_sub_with_clamp.default "
        "vkrt.silu_mul.default "),
    "elementwise_q8": (
        "et_vk.add_q8ta_q8ta_q8to.default et_vk.q8ta_add.default "
        "et_vk.q8ta_pixel_shuffle.default et_vk.q8ta_relu.default "),
    "grid_priors": (
        "et_vk.grid_priors.default "),
    "host.bags": (
        "aten::_embedding_bag_forward_only.out "),
    "host.distances": (
        "aten::_cdist_forward.out aten::_pdist_forward.out aten::dist.out "
        "aten::masked_scatter.out aten::native_dropout.out "),
    "host.fourier": (
        "aten::_fft_c2c.out aten::_fft_c2r.out aten::_fft_r2c.out "),
    "host.indexing": (
        "aten::diagonal_scatter.out aten::index_put.out aten::scatter.src_out "
        "aten::scatter.value_out aten::scatter_add.out "),
    "host.nonzero": (
        "aten::masked_select.out aten::nonzero.out aten::nonzero_static.out "
        "vkrt.mask_places.default "),
    "host.random": (
        "aten::bernoulli.out aten::rand.out aten::rand_like.out aten::randint.low_out "
        "aten::randint.out aten::randn.out aten::randn_like.out aten::randperm.out "
        "aten::uniform.out "),
    "host.recurrent": (
        "llama::gated_delta_rule.out "),
    "host.reduction": (
        "aten::cummax.out aten::cummin.out aten::cumprod.out aten::cumsum.out "
        "aten::logcumsumexp.out aten::sort.values aten::sort.values_stable aten::topk.values "),
    "host.repeating": (
        "aten::repeat_interleave.Tensor_out "),
    "host.selection": (
        "aten::kthvalue.values aten::median.dim_values aten::median.out aten::mode.values "
        "aten::nanmedian.dim_values aten::nanmedian.out "),
    "indexing": (
        "aten.embedding.default aten.gather.default aten.index.Tensor aten.index_select.default "),
    "linear_int8": (
        "aten._weight_int8pack_mm.default et_vk.linear_dq8ca_q4gsw.default "),
    "linear_q4": (
        "et_vk.embedding_q4gsw.default et_vk.linear_q4gsw.default et_vk.linear_qcs4w.default "),
    "linear_q8": (
        "et_vk.linear_q8ta_q8csw.default et_vk.q8ta_linear.default "
        "et_vk.q8ta_linear_gemv.default "),
    "matmul": (
        "aten.addmm.default aten.bmm.default aten.linear.default aten.mm.default "),
    "matmul_sums": (
        "aten.addbmm.default aten.addmv.default "),
    "normalization": (
        "aten._native_batch_norm_legit.no_stats "
        "aten._native_batch_norm_legit_no_training.default aten.native_group_norm.default "
        "aten.native_layer_norm.default et_vk.rms_norm.default "),
    "padding": (
        "aten.constant_pad_nd.default aten.reflection_pad1d.default "
        "aten.reflection_pad2d.default aten.reflection_pad3d.default "
        "aten.replication_pad1d.default aten.replication_pad2d.default "
        "aten.replication_pad3d.default aten.roll.default "),
    "parts": (
        "aten.diagonal_copy.default aten.narrow_copy.default aten.select_copy.int "
        "aten.slice_copy.Tensor aten.split_copy.Tensor aten.split_with_sizes_copy.default "
        "aten.tril.default aten.triu.default aten.unbind_copy.int "),
    "pooling": (
        "aten.avg_pool2d.default aten.max_pool2d.default aten.max_pool2d_with_indices.default "),
    "pooling_any": (
        "aten._adaptive_avg_pool2d.default aten._adaptive_avg_pool3d.default "
        "aten.adaptive_avg_pool1d.default aten.adaptive_avg_pool2d.default "
        "aten.adaptive_avg_pool3d.default aten.adaptive_max_pool1d.default "
        "aten.adaptive_max_pool2d.default aten.adaptive_max_pool3d.default "
        "aten.avg_pool1d.default aten.avg_pool3d.default aten.max_pool1d.default "
        "aten.max_pool1d_with_indices.default aten.max_pool3d.default "
        "aten.max_pool3d_with_indices.default "),
    "quantization": (
        "quantized_decomposed.dequantize_per_tensor.default "
        "quantized_decomposed.quantize_per_tensor.default "),
    "quantization_by_tensor": (
        "quantized_decomposed.dequantize_per_channel.default "
        "quantized_decomposed.dequantize_per_token.default "
        "quantized_decomposed.quantize_per_channel.default "
        "quantized_decomposed.quantize_per_token.default torchao.dequantize_affine.default "
        "torchao.quantize_affine.default "),
    "quantization_params": (
        "quantized_decomposed.choose_qparams.tensor "
        "quantized_decomposed.choose_qparams_per_token_asymmetric.default "
        "torchao.choose_qparams_affine.default "),
    "quantization_whole": (
        "quantized_decomposed.dequantize_per_tensor.tensor "
        "quantized_decomposed.quantize_per_tensor.tensor "),
    "reduction": (
        "aten.all.default aten.all.dim aten.all.dims aten.amax.default aten.amin.default "
        "aten.any.default aten.any.dim aten.any.dims aten.mean.default aten.mean.dim "
        "aten.prod.default aten.prod.dim_int aten.sum.dim_IntList aten.var.correction "
        "aten.var.dim aten.var_mean.correction "),
    "resample": (
        "aten.grid_sampler_2d.default aten.pixel_shuffle.default aten.pixel_unshuffle.default "),
    "rotary": (
        "et_vk.apply_rotary_emb.default et_vk.apply_rotary_emb_hf.default "
        "et_vk.apply_rotary_emb_interleaved.default "),
    "scan": (
        "aten.cumprod.default aten.cumsum.default "),
    "scatter": (
        "aten.index_put.default aten.scatter.src aten.scatter.value aten.scatter_add.default "
        "aten.scatter_reduce.two "),
    "search_sorted": (
        "aten.bucketize.Scalar aten.bucketize.Tensor aten.searchsorted.Scalar "
        "aten.searchsorted.Tensor "),
    "shape": (
        "aten._unsafe_view.default aten.alias_copy.default aten.as_strided_copy.default "
        "aten.clone.default aten.expand_copy.default aten.flip.default aten.permute.default "
        "aten.permute_copy.default aten.repeat.default aten.squeeze_copy.dim "
        "aten.squeeze_copy.dims aten.t_copy.default aten.transpose_copy.int "
        "aten.unfold_copy.default aten.unsqueeze_copy.default aten.view.default "
        "aten.view_copy.default dim_order_ops._clone_dim_order.default et_vk.prepack.default "),
    "softmax": (
        "aten._log_softmax.default aten._softmax.default vkrt.safe_softmax.default "),
    "sort": (
        "aten.sort.default aten.sort.stable aten.topk.default "),
    "upsample": (
        "aten._upsample_bicubic2d_aa.default aten._upsample_bilinear2d_aa.default "
        "aten._upsample_nearest_exact1d.default aten._upsample_nearest_exact2d.default "
        "aten._upsample_nearest_exact3d.default aten.upsample_bicubic2d.default "
        "aten.upsample_bilinear2d.default aten.upsample_bilinear2d.vec "
        "aten.upsample_linear1d.default aten.upsample_nearest1d.default "
        "aten.upsample_nearest2d.default aten.upsample_nearest2d.vec "
        "aten.upsample_nearest3d.default aten.upsample_trilinear3d.default "),
}

KERNELS = {
    "arg_reduction": (
        "aten::argmax.out aten::argmin.out aten::max.dim_max aten::min.dim_min "),
    "attention": (
        "llama::custom_sdpa.out llama::sdpa_with_kv_cache.out llama::update_cache.out "
        "llama::update_cache_with_indices.out "),
    "comparison": (
        "aten::bitwise_and.Tensor_out aten::bitwise_not.out aten::bitwise_or.Tensor_out "
        "aten::bitwise_xor.Tensor_out aten::eq.Scalar_out aten::eq.Tensor_out "
        "aten::ge.Scalar_out aten::ge.Tensor_out aten::gt.Scalar_out aten::gt.Tensor_out "
        "aten::isinf.out aten::isnan.out aten::le.Scalar_out aten::le.Tensor_out "
        "aten::logical_and.out aten::logical_not.out aten::logical_or.out aten::logical_xor.out "
        "aten::lt.Scalar_out aten::lt.Tensor_out aten::ne.Scalar_out aten::ne.Tensor_out "),
    "composed": (
        "aten::bitwise_and.Scalar_out aten::bitwise_left_shift.Tensor_Scalar_out "
        "aten::bitwise_left_shift.Tensor_out aten::bitwise_or.Scalar_out "
        "aten::bitwise_right_shift.Tensor_Scalar_out aten::bitwise_right_shift.Tensor_out "
        "aten::bitwise_xor.Scalar_out aten::clamp.Tensor_out aten::copysign.Scalar_out "
        "aten::div.Scalar_mode_out aten::glu.out aten::ldexp.out aten::logit.out "
        "aten::masked_fill.Scalar_out aten::pow.Scalar_out aten::round.decimals_out "),
    "concat": (
        "aten::arange.out aten::arange.start_out aten::cat.out aten::copy.out aten::copy_ "
        "aten::empty.out aten::empty_permuted.out aten::empty_strided.out aten::fill.Scalar_out "
        "aten::fill.Tensor_out aten::full.out aten::full_like.out aten::ones.out "
        "aten::ones_like.out aten::scalar_tensor.out aten::select_scatter.out "
        "aten::slice_scatter.out aten::stack.out aten::zeros.out aten::zeros_like.out "
        "dim_order_ops::_empty_dim_order.out "),
    "convolution": (
        "aten::convolution.out "),
    "elementwise": (
        "aten::_to_copy.out aten::abs.out aten::acos.out aten::acosh.out aten::add.Scalar_out "
        "aten::add.out aten::asin.out aten::asinh.out aten::atan.out aten::atan2.out "
        "aten::atanh.out aten::ceil.out aten::clamp.out aten::copysign.out aten::cos.out "
        "aten::cosh.out aten::div.Scalar_out aten::div.out aten::div.out_mode aten::elu.out "
        "aten::erf.out aten::erfinv.out aten::exp.out aten::exp2.out aten::expm1.out "
        "aten::floor.out aten::floor_divide.out aten::fmax.out aten::fmin.out "
        "aten::fmod.Scalar_out aten::fmod.Tensor_out aten::gelu.out aten::hardshrink.out "
        "aten::hardsigmoid.out aten::hardswish.out aten::hardtanh.out aten::hypot.out "
        "aten::leaky_relu.out aten::lgamma.out aten::log.out aten::log10.out aten::log1p.out "
        "aten::log2.out aten::maximum.out aten::minimum.out aten::mish.out aten::mul.Scalar_out "
        "aten::mul.out aten::neg.out aten::pow.Tensor_Scalar_out aten::pow.Tensor_Tensor_out "
        "aten::reciprocal.out aten::relu.out aten::remainder.Scalar_out "
        "aten::remainder.Tensor_out aten::round.out aten::rsqrt.out aten::rsub.Scalar_out "
        "aten::sigmoid.out aten::sign.out aten::silu.out aten::sin.out aten::sinh.out "
        "aten::softplus.out aten::sqrt.out aten::sub.Scalar_out aten::sub.out aten::tan.out "
        "aten::tanh.out aten::trunc.out aten::where.self_out "
        "dim_order_ops::_to_dim_order_copy.out "),
    "indexing": (
        "aten::embedding.out aten::gather.out aten::index.Tensor_out aten::index_select.out "),
    "matmul": (
        "aten::addmm.out aten::bmm.out aten::linear.out aten::mm.out "),
    "matmul_sums": (
        "aten::addbmm.out aten::addmv.out "),
    "normalization": (
        "aten::_native_batch_norm_legit.no_stats_out "
        "aten::_native_batch_norm_legit_no_training.out aten::native_group_norm.out "
        "aten::native_layer_norm.out "),
    "padding": (
        "aten::constant_pad_nd.out aten::reflection_pad1d.out aten::reflection_pad2d.out "
        "aten::reflection_pad3d.out aten::replication_pad1d.out aten::replication_pad2d.out "
        "aten::replication_pad3d.out aten::roll.out "),
    "parts": (
        "aten::diagonal_copy.out aten::narrow_copy.out aten::select_copy.int_out "
        "aten::slice_copy.Tensor_out aten::split_copy.Tensor_out "
        "aten::split_with_sizes_copy.out aten::tril.out aten::triu.out "
        "aten::unbind_copy.int_out "),
    "pooling": (
        "aten::avg_pool2d.out aten::max_pool2d_with_indices.out "),
    "pooling_any": (
        "aten::_adaptive_avg_pool2d.out aten::_adaptive_avg_pool3d.out "
        "aten::adaptive_avg_pool1d.out aten::adaptive_avg_pool2d.out "
        "aten::adaptive_avg_pool3d.out aten::adaptive_max_pool1d.out "
        "aten::adaptive_max_pool2d.out aten::adaptive_max_pool3d.out aten::avg_pool1d.out "
        "aten::avg_pool3d.out aten::max_pool1d.out aten::max_pool1d_with_indices.out "
        "aten::max_pool3d.out aten::max_pool3d_with_indices.out "),
    "quantization": (
        "quantized_decomposed::dequantize_per_tensor.out "
        "quantized_decomposed::quantize_per_tensor.out "),
    "quantization_by_tensor": (
        "quantized_decomposed::dequantize_per_channel.out "
        "quantized_decomposed::dequantize_per_token.out "
        "quantized_decomposed::quantize_per_channel.out "
        "quantized_decomposed::quantize_per_token.out "),
    "quantization_params": (
        "quantized_decomposed::choose_qparams.Tensor_out "
        "quantized_decomposed::choose_qparams_per_token_asymmetric.out "),
    "quantization_whole": (
        "quantized_decomposed::dequantize_per_tensor.Tensor_out "
        "quantized_decomposed::quantize_per_tensor.Tensor_out "),
    "reduction": (
        "aten::all.all_out aten::all.dims_out aten::all.out aten::amax.out aten::amin.out "
        "aten::any.all_out aten::any.dims_out aten::any.out aten::max.unary_out "
        "aten::mean.dtype_out aten::mean.out aten::min.unary_out aten::prod.int_out "
        "aten::prod.out aten::sum.IntList_out aten::var.correction_out aten::var.out "
        "aten::var_mean.correction_out "),
    "resample": (
        "aten::grid_sampler_2d.out aten::pixel_shuffle.out aten::pixel_unshuffle.out "),
    "scan": (
        "aten::cumprod.out aten::cumsum.out "),
    "scatter": (
        "aten::index_put.out aten::index_put_ aten::scatter.src_out aten::scatter.value_out "
        "aten::scatter_add.out aten::scatter_reduce.two_out "),
    "search_sorted": (
        "aten::bucketize.Scalar_out aten::bucketize.Tensor_out aten::searchsorted.Scalar_out "
        "aten::searchsorted.Tensor_out "),
    "shape": (
        "aten::alias_copy.out aten::as_strided_copy.out aten::clone.out aten::detach_copy.out "
        "aten::expand_copy.out aten::flip.out aten::lift_fresh_copy.out aten::permute_copy.out "
        "aten::repeat.out aten::squeeze_copy.dim_out aten::squeeze_copy.dims_out "
        "aten::t_copy.out aten::transpose_copy.int_out aten::unfold_copy.out "
        "aten::unsqueeze_copy.out aten::view_copy.out dim_order_ops::_clone_dim_order.out "
        "executorch_prim::et_view.default "),
    "softmax": (
        "aten::_log_softmax.out aten::_softmax.out "),
    "sort": (
        "aten::sort.values aten::sort.values_stable aten::topk.values "),
    "upsample": (
        "aten::_upsample_bicubic2d_aa.out aten::_upsample_bilinear2d_aa.out "
        "aten::_upsample_nearest_exact1d.out aten::_upsample_nearest_exact2d.out "
        "aten::_upsample_nearest_exact3d.out aten::upsample_bicubic2d.out "
        "aten::upsample_bilinear2d.out aten::upsample_bilinear2d.vec_out "
        "aten::upsample_linear1d.out aten::upsample_nearest1d.out aten::upsample_nearest2d.out "
        "aten::upsample_nearest2d.vec_out aten::upsample_nearest3d.out "
        "aten::upsample_trilinear3d.out "),
}
