#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Resampling between the four nearest pixels, as torch's "bilinear".
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
#include "image_sides.glsl"
// Source pixels per pixel of the result.
PARAM_FLOAT(6, scale_x)
PARAM_FLOAT(7, scale_y)
// Whether the centres of the corner pixels coincide, else the edges of the images.
CASE(8, align_corners)

float position(int i, float scale) {
  precise float centre = scale * (float(i) + 0.5);
  return align_corners != 0 ? scale * float(i) : max(centre - 0.5, 0.0);
}

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  ivec2 image_row = image_of(row);
  float px = position(column, scale_x);
  float py = position(image_row.y, scale_y);
  // Limited as floats: a file's step may lead beyond all integers.
  int x = int(min(px, float(X - 1)));
  int y = int(min(py, float(H - 1)));
  int next_x = min(x + 1, X - 1);
  float u = clamp(px - float(x), 0.0, 1.0);
  float v = clamp(py - float(y), 0.0, 1.0);
  int first = image_row.x * H;
  int top = first + y;
  int bottom = first + min(y + 1, H - 1);
  vec4 above = (1.0 - u) * LOAD(source, AT(x, top, z, X, Z))
      + u * LOAD(source, AT(next_x, top, z, X, Z));
  vec4 below = (1.0 - u) * LOAD(source, AT(x, bottom, z, X, Z))
      + u * LOAD(source, AT(next_x, bottom, z, X, Z));
  STORE(result, AT(column, row, z, out_X, Z), (1.0 - v) * above + v * below);
}
