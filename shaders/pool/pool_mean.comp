#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Mean of windows over up to three spatial dimensions. Windows have no gaps.
#include "pool.glsl"

OUT(0, result)
IN(1, source)
// What the sum is divided by, as in avg_pool2d.comp.
PARAM(22, divisor)

int count_of(ivec3 first, ivec3 end) {
  ivec3 sides = end - first;
  return sides.x * sides.y * sides.z;
}

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  Window w = window_of(i);
  ivec3 size = ivec3(X, H, D);
  ivec3 padded = min(w.end, size + ivec3(padding_x, padding_y, padding_z));
  ivec3 first = max(w.first, ivec3(0)), end = min(w.end, size);
  vec4 sum = vec4(0);
  for (int z = first.z; z < end.z; z++) {
    for (int y = first.y; y < end.y; y++) {
      // By rows, so that the rounding of a long sum grows with the number of rows only.
      vec4 row = vec4(0);
      for (int x = first.x; x < end.x; x++) row += LOAD(source, PIXEL(w, x, y, z));
      sum += row;
    }
  }
  int count = divisor > 0 ? divisor : divisor < 0 ? count_of(w.first, padded) : count_of(first, end);
  // A window wholly in the padding (ceil_mode) is 0, as in torch.
  STORE(result, RESULT(w), mask_padding(sum / float(max(count, 1)), VALID(w.z, channels)));
}
