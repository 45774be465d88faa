#version 450
//! storages: texel buffer
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
// A row of scores becomes weights that add up to 1, zero for the keys that its query does not see:
// see attention.glsl.
#include "tensor.glsl"
#include "params.glsl"

ALIASED SSBO_OUT(0, weights, f32)
ALIASED FLAT_AS(1, scores, f32)
#define POSITION_BINDING 2
#include "attention.glsl"
#include "visible_keys.glsl"

void main() {
  int i = invocation();
  int heads = kv_heads * group;
  if (i >= (further + 1) * count * heads) return;
  int line = i * width, last = last_key(query_of(i));
  float top = LOAD_FLAT_AS(scores, line, f32).x;
  for (int t = 0; 4 * t <= last; t++) {
    vec4 v = seen(LOAD_FLAT_AS(scores, line + t, f32), t, last, top);
    top = max(top, max(max(v.x, v.y), max(v.z, v.w)));
  }
  float sum = 0.0;
  for (int t = 0; 4 * t <= last; t++)
    sum += dot(seen(exp(LOAD_FLAT_AS(scores, line + t, f32) - top), t, last, 0.0), vec4(1));
  for (int t = 0; 4 * t <= last_key(count - 1); t++) {
    vec4 v = 4 * t <= last && !sees_nothing(top)
        ? seen(exp(LOAD_FLAT_AS(scores, line + t, f32) - top), t, last, 0.0) / sum : vec4(0);
    weights[line + t] = v;
  }
}
