// What convolutions and products sum up, and how a sum becomes texel z of the result: plus a bias
// and through an activation, or of quantized tensors as epilogue_q8.glsl says.
//
//   source_of(v)             what of the source is multiplied
//   product(a, b)            the sum of the products of 4 elements
//   sum_of(v)                the sum of 4 sums
//   EPILOGUE, epilogue_at(z) what ends the sums of texel z, loaded once for all its pixels
//   ended(sum, epilogue)     the texel of the result
//
// The including shader defines VECTORS, the binding of the first vector, and ENDS, the id of the
// first parameter. Whether there is a bias and which activation are parameters like others, so that
// layers with and without them share pipelines.

#if defined(DTYPE_i8) || defined(DTYPE_i32)

#include "epilogue_q8.glsl"

#else

#include "math.glsl"

// BIAS_IS_TEXELS: read through a texel view in every storage.
#ifdef BIAS_IS_TEXELS
TEXEL_IN(VECTORS, bias, DTYPE)
#define LOAD_BIAS(z) texelFetch(bias, z)
#else
FLAT(VECTORS, bias)
#define LOAD_BIAS(z) LOAD_FLAT(bias, z)
#endif
PARAM(ENDS, has_bias)
// What is limited: 0 the sum, 1 and 2 a sixth of it plus a half; hardswish (1) multiplies that by
// the sum, hardsigmoid (2) does not.
PARAM(ENDS + 1, gate)
PARAM_FLOAT(ENDS + 2, low)
PARAM_FLOAT(ENDS + 3, high)

#define EPILOGUE vec4

float source_of(float v) { return v; }
vec4 source_of(vec4 v) { return v; }
float product(vec4 a, vec4 b) { return dot(a, b); }
float sum_of(vec4 v) { return dot(v, vec4(1)); }

// Texel z of the bias, or zeros. Where there is none, a single texel of anything is bound, NaN too.
vec4 epilogue_at(int z) {
  vec4 v = LOAD_BIAS(has_bias != 0 ? z : 0);
  return has_bias != 0 ? v : vec4(0);
}

// One way for all activations: kernels do this for each texel of a tile, and compilers keep all
// branches. Without an activation the limits are infinite.
vec4 activated(vec4 v) {
  float slope = gate != 0 ? 1.0 / 6.0 : 1.0, shift = gate != 0 ? 0.5 : -0.0;
  vec4 limited = limit(v * slope + shift, low, high);
  return gate == 1 ? v * limited : limited;
}

vec4 ended(vec4 sum, vec4 bias) { return activated(sum + bias); }

#endif
