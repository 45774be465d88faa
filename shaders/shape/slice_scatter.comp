#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// A tensor with a slice of one dimension replaced: indices start, start + stride, .. of it, `count`
// of them, are those of the patch.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
IN(2, piece)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Of the dimension: its size, whether it is the packed one, else texels of one index of it.
PARAM(3, size)
CASE(4, packed)
PARAM(5, inner)
PARAM(6, start)
PARAM(7, stride)
PARAM(8, count)
PARAM(9, piece_X)
PARAM(10, piece_Y)
PARAM(11, piece_Z)

// Which index of the patch stands at `index`, or -1.
int replaced(int index) {
  int away = index - start;
  ivec2 step = DIVIDED(max(away, 0), stride);
  return away >= 0 && step.y == 0 && step.x < count ? step.x : -1;
}

T4 patched(int t) { return LOAD(piece, AT_LINEAR(t, piece_X, piece_Y, piece_Z)); }

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  T4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  if (packed == 0) {
    ivec2 outer = DIVIDED(i, inner), place = DIVIDED(outer.x, size);
    int by = replaced(place.y);
    if (by >= 0) v = patched((place.x * count + by) * inner + outer.y);
  } else {
    ivec2 row_texel = DIVIDED(i, Z);
    int valid = VALID(row_texel.y, size);
    for (int lane = 0; lane < valid; lane++) {
      int by = replaced(4 * row_texel.y + lane);
      if (by >= 0) v[lane] = patched(row_texel.x * piece_Z + (by >> 2))[by & 3];
    }
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), v);
}
