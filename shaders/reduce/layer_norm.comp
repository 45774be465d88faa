#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Normalization of rows of `count` texels to mean 0 and variance 1, then scale and shift; an
// invocation does a whole row, so the result may lie over the source.
#include "layer_norm.glsl"

void main() {
  int row = invocation();
  if (row >= rows) return;
  int base = row * count;
  vec4 sum = vec4(0);
  for (int block = 0; block < count; block += 64) {
    int stop = min(block + 64, count);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) part += TEXEL(base + k);
    sum += part;
  }
  float mean = across_lanes(sum) / float(length);
  sum = vec4(0);
  for (int block = 0; block < count; block += 64) {
    int stop = min(block + 64, count);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) part += square_of(base, k, mean);
    sum += part;
  }
  float scale = 1.0 / sqrt(across_lanes(sum) / float(length) + epsilon);
  for (int k = 0; k < count; k++) put_normalized(base, k, mean, scale);
}
