#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 u8
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
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  ivec2 image_row = image_of(row);
  // Limited as floats: a file's step may lead beyond all integers.
  int x = int(min(float(column) * scale_x, float(X - 1)));
  int y = int(min(float(image_row.y) * scale_y, float(H - 1)));
  STORE(result, AT(column, row, z, out_X, Z), LOAD(source, AT(x, image_row.x * H + y, z, X, Z)));
}
