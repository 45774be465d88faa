#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// One row rounded to what 8 bits hold of it, as floats: choose_qparams.comp and quantize_rows.comp in
// one, and rms_norm.comp before them where the row has a norm. Each invocation looks at the whole row
// and writes `chunk` texels.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
FLAT(2, weight)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, chunk)
PARAM_FLOAT(5, lowest)
PARAM_FLOAT(6, highest)
PARAM_FLOAT(7, smallest_scale)
CASE(8, has_norm)
PARAM_FLOAT(9, epsilon)
#include "qparams.glsl"
#include "quantized_row.glsl"

#define TEXEL(k) LOAD(source, AT_LINEAR(k, X, Y, Z))
#include "mean_square.glsl"

// What a tensor of this dtype would hold of a number.
#if defined(DTYPE_f16)
vec4 held(vec4 v) { return unpack_f16(pack_f16(v)); }
#else
vec4 held(vec4 v) { return v; }
#endif

vec4 element(int k, float scale) {
  vec4 v = TEXEL(k);
  return has_norm != 0 ? held(v * scale * LOAD_FLAT(weight, k)) : v;
}

void main() {
  int first = invocation() * chunk;
  if (first >= Z) return;
  float scale = has_norm != 0 ? scale_of_row() : 1.0;
  vec4 low = vec4(0), high = vec4(0);
  for (int k = 0; k < Z; k++) {
    vec4 v = element(k, scale);
    low = min(low, v);
    high = max(high, v);
  }
  Steps steps = steps_of(low, high);
  float size_of_step = held(vec4(steps.size)).x;
  int end = min(first + chunk, Z);
  for (int k = first; k < end; k++) {
    vec4 v = through_8_bits(element(k, scale), size_of_step, steps.zero_point);
    STORE(result, AT_LINEAR(k, X, Y, Z), MASKED(v, k, size));
  }
}
