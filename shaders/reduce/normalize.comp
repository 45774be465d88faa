#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The last stage of a normalization: (x - mean) * scale of the set that each element belongs to,
// see moments.comp, times weight plus bias. The result may lie over the source.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
#if defined(STORAGE_BUFFER)
// A texel view: every device has 4 storage buffers in a kernel, many have no more.
TEXEL_IN(2, moments, f32)
#define LOAD_MOMENTS(at) texelFetch(moments, at)
#else
IN_AS(2, moments, f32)
#define LOAD_MOMENTS(at) LOAD_AS(moments, at, f32)
#endif
FLAT(3, weight)
FLAT(4, bias)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, across)
PARAM(5, rows)
PARAM(6, width)
PARAM(7, moments_X)
CASE(8, has_weight)
CASE(9, has_bias)
CASE(10, spread)
PARAM(11, inner)
PARAM(12, period)
#include "channel_mapping.glsl"

vec4 moments_of(int set) { return LOAD_MOMENTS(AT_ROW(set, 0, moments_X, 1)); }

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, Z);
  int z = row_texel.y;
  vec4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  int first = QUOTIENT(row_texel.x, rows) * across;
  if (across == 1 || (width & 3) == 0) {
    vec4 m = moments_of(first + (across == 1 ? 0 : QUOTIENT(4 * z, width)));
    v = (v - m.x) * m.y;
  } else {
    // The lanes may be of different sets.
    for (int lane = 0; lane < 4; lane++) {
      vec4 m = moments_of(first + min(QUOTIENT(4 * z + lane, width), across - 1));
      v[lane] = (v[lane] - m.x) * m.y;
    }
  }
  int place = mapped_place(i);
  v = SCALED(v, place);
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(z, size)));
}
