#version 450
//! storages: texel buffer texture3d
//! dtypes: f32:i32 f16:i32 i32
#extension GL_GOOGLE_include_directive : require
// Index of the first maximum or minimum along one dimension; a NaN counts as the extreme.
//
// Lane by lane where the packed dimension is kept: the reduced one then has `count` places `inner`
// texels apart. Across the lanes where it is the reduced one: `count` texels in a row.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, minimum)
CASE(5, across)
PARAM(6, count)
PARAM(7, inner)
PARAM(8, length)
PARAM(9, source_X)
PARAM(10, source_Y)
PARAM(11, source_Z)

#define TEXEL(t) LOAD(source, AT_LINEAR(t, source_X, source_Y, source_Z))

#if defined(DTYPE_i32)
bool is_nan(int v) { return false; }
#else
bool is_nan(float v) { return isnan(v); }
#endif

bool better(T v, T best) {
  return !is_nan(best) && (is_nan(v) || (minimum != 0 ? v < best : v > best));
}

int along_texels(int base) {
  T best = TEXEL(base).x;
  int index = 0;
  for (int k = 0; k < count; k++) {
    T4 v = TEXEL(base + k);
    for (int lane = 0; lane < 4; lane++) {
      int number = 4 * k + lane;
      if (number < length && better(v[lane], best)) {
        best = v[lane];
        index = number;
      }
    }
  }
  return index;
}

ivec4 along_places(int base) {
  T4 best = TEXEL(base);
  ivec4 index = ivec4(0);
  for (int k = 1; k < count; k++) {
    T4 v = TEXEL(base + k * inner);
    for (int lane = 0; lane < 4; lane++) {
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
  int z = i % Z;
  ivec4 v = ivec4(0);
  if (across != 0) {
    int lanes = VALID(z, size);
    for (int lane = 0; lane < lanes; lane++) {
      v[lane] = along_texels((i / Z * size + 4 * z + lane) * count);
    }
  } else {
    v = along_places(i / inner * count * inner + i % inner);
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(z, size)));
}
