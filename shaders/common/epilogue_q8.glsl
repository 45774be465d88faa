// How sums of products of quantized tensors end. A sum of (q - zero) * weight is a whole number, exact
// in 32 bits: the host refuses longer ones. Times the scales of the source and of the weight's row it is
// real, gets a bias, is limited from below (relu), and is quantized again; or it stays real (DTYPE_OUT).
//
// Goes on from epilogue.glsl. Vectors are read through texel views in every storage: with storage
// buffers they would be more than every device binds.

#include "q8.glsl"

TEXEL_IN(VECTORS, scales, f32)
TEXEL_IN(VECTORS + 1, bias, f32)
PARAM(ENDS, has_bias)
PARAM_FLOAT(ENDS + 1, source_scale)
PARAM(ENDS + 2, source_zero)
PARAM_FLOAT(ENDS + 3, lowest)
PARAM_FLOAT(ENDS + 4, inverse)
PARAM(ENDS + 5, zero)
// Whether the result is limited to a range and quantized once more.
PARAM(ENDS + 6, is_requantized)
PARAM_FLOAT(ENDS + 7, middle_scale)
PARAM_FLOAT(ENDS + 8, low)
PARAM_FLOAT(ENDS + 9, high)
PARAM_FLOAT(ENDS + 10, last_inverse)
PARAM(ENDS + 11, last_zero)

// Whether numbers of 8 bits are multiplied as floats, which GPUs do at four times the rate. Sums of few
// products are exact; longer ones are integers.
CASE(ENDS + 12, as_floats)

struct Epilogue { vec4 scale, offset; };
#define EPILOGUE Epilogue

int source_of(int v) { return v - source_zero; }
ivec4 source_of(ivec4 v) { return v - source_zero; }
int product(ivec4 a, ivec4 b) {
  if (as_floats != 0) return int(dot(vec4(a), vec4(b)));
  return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

int sum_of(ivec4 v) { return v.x + v.y + v.z + v.w; }

Epilogue epilogue_at(int z) {
  vec4 v = texelFetch(bias, has_bias != 0 ? z : 0);
  return Epilogue(source_scale * texelFetch(scales, z), has_bias != 0 ? v : vec4(0));
}

OUT4 ended(ivec4 sum, Epilogue epilogue) {
  precise vec4 real = vec4(sum) * epilogue.scale + epilogue.offset;
  real = max(real, vec4(lowest));
#if defined(DTYPE_OUT_f32) || defined(DTYPE_OUT_f16)
  return real;
#else
  ivec4 q = quantized(real, inverse, zero);
  return is_requantized != 0
      ? requantized(q, zero, middle_scale, low, high, last_inverse, last_zero) : q;
#endif
}
