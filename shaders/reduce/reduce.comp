#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 f16:f32 f32:f16
#extension GL_GOOGLE_include_directive : require
// A reduction, an invocation for each texel of the result: see reduce.glsl.
#include "reduce.glsl"

// In blocks, so that the rounding of a long sum grows with the number of blocks only.
T4 reduced(int base, int begin, int end) {
  T4 total = neutral();
  start(base, begin);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    T4 v = neutral();
    for (int r = block; r < stop; r++) v = combine(v, next_texel());
    total = combine(total, v);
  }
  return total;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec3 place = place_of(i);
  int z = place.y, base = place.z;
  int begin = place.x * chunk;
  int end = min(begin + chunk, count);
  T4 v = T4(0);
  if (across == 0) {
    v = reduced(base + z, begin, end);
  } else {
    int lanes = VALID(z, size);
    for (int lane = 0; lane < lanes; lane++) {
      v[lane] = across_lanes(reduced(base + (4 * z + lane) * lane_stride, begin, end));
    }
  }
  put(i, z, v);
}
