#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rows divided by the root of their mean square, times a weight.
//
// `parts` invocations share a row: each sums all of it, which costs lanes that would be idle
// nothing (`vkrt.ops.teams.chunk_for`), and writes `chunk` texels. With one part the result may lie
// over the source.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
FLAT(2, weight)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Elements of a row.
PARAM(3, size)
PARAM(4, rows)
PARAM(5, parts)
PARAM(6, chunk)
PARAM_FLOAT(7, epsilon)

// Where the row of this invocation begins.
int base;
#define TEXEL(k) LOAD(source, AT_LINEAR(base + (k), X, Y, Z))
#include "mean_square.glsl"

void main() {
  int i = invocation();
  if (i >= rows * parts) return;
  ivec2 row_part = DIVIDED(i, parts);
  base = row_part.x * Z;
  float scale = scale_of_row();
  int first = row_part.y * chunk;
  int end = min(first + chunk, Z);
  for (int k = first; k < end; k++) {
    vec4 v = TEXEL(k) * scale * LOAD_FLAT(weight, k);
    STORE(result, AT_LINEAR(base + k, X, Y, Z), mask_padding(v, VALID(k, size)));
  }
}
