#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 f16:f32 f32:f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// A reduction, a team for each texel of the result: see reduce.glsl and team.glsl.
#include "reduce.glsl"
#define TEAM 26
#include "team.glsl"
#include "team_extremes.glsl"

#if defined(FEATURE_SUBGROUPS)
T4 of_subgroup(T4 v) {
  switch (opcode) {
    case SUM: case SQUARES: return subgroupAdd(v);
    case MAX: return subgroup_largest(v);
    case MIN: return subgroup_smallest(v);
    case PROD: return subgroupMul(v);
  }
  return v;
}
#endif
T4 team_reduced(T4 v) { JOIN(v, of_subgroup, combine) }

// In blocks, so that the rounding of a long sum grows with the number of blocks only.
T4 reduced(int base, int begin, int end) {
  T4 total = neutral();
  for (int block = begin; block < end; block += 64 * MEMBERS) {
    T4 v = neutral();
    SHARED(r, block, min(block + 64 * MEMBERS, end)) {
      start(base, r);
      v = combine(v, next_texel());
    }
    total = combine(total, v);
  }
  return team_reduced(total);
}

void main() {
  find_team();
  bool is_there = team < X * Y * Z;
  int i = is_there ? team : 0;
  ivec3 place = place_of(i);
  int z = place.y, base = place.z;
  int begin = place.x * chunk;
  int end = is_there ? min(begin + chunk, count) : begin;
  T4 v = T4(0);
  if (across == 0) {
    v = reduced(base + z, begin, end);
  } else {
    // All of a group come to all lanes; what lies in the padding of the result is not looked at.
    int lanes = VALID(z, size);
    for (int lane = 0; lane < 4; lane++) {
      T4 found = reduced(base + (4 * z + lane) * lane_stride, begin, lane < lanes ? end : begin);
      v[lane] = across_lanes(found);
    }
  }
  if (is_there && member == 0) put(i, z, v);
}
