#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// One row rounded to what 8 bits hold of it, as floats: choose_qparams.comp and quantize_rows.comp in
// one. Each invocation looks at the whole row and writes `chunk` texels.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, chunk)
PARAM_FLOAT(5, lowest)
PARAM_FLOAT(6, highest)
PARAM_FLOAT(7, smallest_scale)
#include "qparams.glsl"
#include "quantized_row.glsl"

void main() {
  int first = invocation() * chunk;
  if (first >= Z) return;
  vec4 low = vec4(0), high = vec4(0);
  for (int k = 0; k < Z; k++) {
    vec4 v = LOAD(source, AT_LINEAR(k, X, Y, Z));
    low = min(low, v);
    high = max(high, v);
  }
  Steps steps = steps_of(low, high);
#if defined(DTYPE_f16)
  // As a tensor of halves would hold it.
  steps.size = unpack_f16(pack_f16(vec4(steps.size))).x;
#endif
  int end = min(first + chunk, Z);
  for (int k = first; k < end; k++) {
    POSITION at = AT_LINEAR(k, X, Y, Z);
    vec4 v = through_8_bits(LOAD(source, at), steps.size, steps.zero_point);
    STORE(result, at, MASKED(v, k, size));
  }
}
