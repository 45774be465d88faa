#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Resampling by the nearest pixel, as torch's "nearest": it rounds down.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
#include "image_sides.glsl"
// Source pixels per pixel of the result.
PARAM_FLOAT(6, scale_x)
PARAM_FLOAT(7, scale_y)

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  int z = i % Z;
  i /= Z;
  int column = i % out_X;
  int row = i / out_X;
  int x = min(int(floor(float(column) * scale_x)), X - 1);
  int y = min(int(floor(float(row % out_H) * scale_y)), H - 1);
  STORE(result, AT(column, row, z, out_X, Z), LOAD(source, AT(x, row / out_H * H + y, z, X, Z)));
}
