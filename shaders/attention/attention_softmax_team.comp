#version 450
//! storages: texel buffer
//! dtypes: f32
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// attention_softmax.comp with a team (team.glsl) for each row of scores.
#include "tensor.glsl"
#include "params.glsl"

ALIASED SSBO_OUT(0, weights, f32)
ALIASED FLAT_AS(1, scores, f32)
#define POSITION_BINDING 2
#include "attention.glsl"
#include "visible_keys.glsl"
#define TEAM 13
#include "team.glsl"
#include "team_extremes.glsl"

#define LARGER(u, v) max(u, v)
vec4 team_largest(vec4 v) { JOIN(v, subgroup_largest, LARGER) }

void main() {
  find_team();
  int heads = kv_heads * group;
  bool is_there = team < (further + 1) * count * heads;
  int i = is_there ? team : 0;
  int line = i * width, last = last_key(query_of(i));
  int used = is_there ? last / 4 + 1 : 0, all = is_there ? last_key(count - 1) / 4 + 1 : 0;
  float top = is_there ? LOAD_FLAT_AS(scores, line, f32).x : 0.0;
  vec4 tops = vec4(top);
  SHARED(t, 0, used) tops = max(tops, seen(LOAD_FLAT_AS(scores, line + t, f32), t, last, top));
  tops = team_largest(tops);
  top = max(max(tops.x, tops.y), max(tops.z, tops.w));
  vec4 sums = vec4(0);
  SHARED(t, 0, used)
    sums += seen(exp(LOAD_FLAT_AS(scores, line + t, f32) - top), t, last, 0.0);
  float sum = dot(team_sum(sums), vec4(1));
  SHARED(t, 0, all)
    weights[line + t] = t < used && !sees_nothing(top)
        ? seen(exp(LOAD_FLAT_AS(scores, line + t, f32) - top), t, last, 0.0) / sum : vec4(0);
}
