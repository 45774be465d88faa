#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:i32 f16:i32 i32
#extension GL_GOOGLE_include_directive : require
// Index of the extreme of each part, see arg_reduce.glsl; one invocation does a texel of a part.
#include "arg_reduce.glsl"

int along_texels(int base, int begin, int end) {
  T best = TEXEL(base + begin).x;
  int index = 4 * begin;
  for (int k = begin; k < end; k++) {
    T4 v = TEXEL(base + k);
    [[unroll]] for (int lane = 0; lane < 4; lane++) {
      int number = 4 * k + lane;
      if (number < length && better(v[lane], best)) {
        best = v[lane];
        index = number;
      }
    }
  }
  return index;
}

ivec4 along_places(int base, int begin, int end) {
  T4 best = TEXEL(base + begin * inner);
  ivec4 index = ivec4(begin);
  for (int k = begin + 1; k < end; k++) {
    T4 v = TEXEL(base + k * inner);
    [[unroll]] for (int lane = 0; lane < 4; lane++) {
      if (better(v[lane], best[lane])) {
        best[lane] = v[lane];
        index[lane] = k;
      }
    }
  }
  return index;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 part_texel = divided(i, QUOTIENT(X * Y * Z, parts), IS_CONSTANT(X));
  int r = part_texel.y, begin = part_texel.x * chunk, end = min(begin + chunk, count);
  int z = REST_OF(i, Z);
  ivec4 v = ivec4(0);
  if (across != 0) {
    int lanes = VALID(z, size);
    for (int lane = 0; lane < lanes; lane++) {
      v[lane] = along_texels(TEXELS_BASE(r, lane), begin, end);
    }
  } else {
    v = along_places(PLACES_BASE(r), begin, end);
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(z, size)));
}
