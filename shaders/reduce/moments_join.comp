#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
// The second stage of a normalization: each set's mean and 1 / sqrt(variance + epsilon), from what
// moments.comp found for its parts.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, partial)
PARAM(0, X)
PARAM(1, sets)
PARAM(2, parts)
PARAM_FLOAT(3, epsilon)

#define PART(p, set) LOAD(partial, AT_ROW((p) * sets + (set), 0, X, 1))

void main() {
  int set = invocation();
  if (set >= sets) return;
  float elements = 0.0, sum = 0.0;
  for (int p = 0; p < parts; p++) {
    vec4 v = PART(p, set);
    elements += v.x;
    sum += v.x * v.y;
  }
  float mean = sum / elements;
  sum = 0.0;
  for (int p = 0; p < parts; p++) {
    vec4 v = PART(p, set);
    float distance = v.y - mean;
    sum += v.z + v.x * distance * distance;
  }
  STORE(result, AT_ROW(set, 0, X, 1),
        vec4(mean, 1.0 / sqrt(sum / elements + epsilon), 0, 0));
}
