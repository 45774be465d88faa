#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Normalization by known moments of each channel: (x - mean) / sqrt(variance + epsilon), times
// weight plus bias.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

#if defined(STORAGE_BUFFER)
// Every device has 4 storage buffers in a kernel, many have no more: the vectors are texel views.
#undef FLAT
#undef LOAD_FLAT
#define FLAT(b, name) TEXEL_IN(b, name, DTYPE)
#define LOAD_FLAT(name, i) texelFetch(name, i)
#endif

ALIASED OUT(0, result)
ALIASED IN(1, source)
FLAT(2, mean)
FLAT(3, variance)
FLAT(4, weight)
FLAT(5, bias)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM_FLOAT(4, epsilon)
CASE(5, has_weight)
CASE(6, has_bias)
CASE(7, spread)
PARAM(8, inner)
PARAM(9, period)
#include "channel_mapping.glsl"

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  int place = mapped_place(i);
  vec4 v = LOAD(source, AT_LINEAR(i, X, Y, Z)) - MAPPED(mean, place);
  v /= sqrt(MAPPED(variance, place) + epsilon);
  v = SCALED(v, place);
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, REST_OF(i, Z), size));
}
