#version 450
//! storages: texel buffer texture3d
//! dtypes: i8
#extension GL_GOOGLE_include_directive : require
// The sum of two quantized tensors, quantized: a + alpha * b.
#include "tensor.glsl"
#include "broadcast.glsl"
#include "q8.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, a)
ALIASED IN(2, b)
OPERAND(7, a)
OPERAND(14, b)
PARAM_FLOAT(21, scale_a)
PARAM(22, zero_a)
PARAM_FLOAT(23, scale_b)
PARAM(24, zero_b)
PARAM_FLOAT(25, inverse)
PARAM(26, zero)
PARAM_FLOAT(27, alpha)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec4 spot = spot_of(i);
  precise vec4 u = real_of(OPERAND_TEXEL(a, i, spot, DTYPE), zero_a, scale_a);
  precise vec4 v = real_of(OPERAND_TEXEL(b, i, spot, DTYPE), zero_b, scale_b);
  precise vec4 sum = u + alpha * v;
  STORE(result, AT_LINEAR(i, X, Y, Z),
        mask_padding(quantized(sum, inverse, zero), VALID(spot.w, size)));
}
