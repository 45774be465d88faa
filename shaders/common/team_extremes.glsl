// The largest and the smallest over a subgroup, for team.glsl. A NaN stays, which the operations of
// subgroups do not promise.
#if defined(FEATURE_SUBGROUPS)

ivec4 subgroup_largest(ivec4 v) { return subgroupMax(v); }
ivec4 subgroup_smallest(ivec4 v) { return subgroupMin(v); }
uvec4 subgroup_largest(uvec4 v) { return subgroupMax(v); }
uvec4 subgroup_smallest(uvec4 v) { return subgroupMin(v); }

vec4 with_nan_of(vec4 v, vec4 found) {
  ivec4 is_nan = subgroupOr(ivec4(isnan(v)));
  return mix(found, vec4(intBitsToFloat(0x7fc00000)), notEqual(is_nan, ivec4(0)));
}
vec4 subgroup_largest(vec4 v) {
  return with_nan_of(v, subgroupMax(mix(v, vec4(intBitsToFloat(0xff800000)), isnan(v))));
}
vec4 subgroup_smallest(vec4 v) {
  return with_nan_of(v, subgroupMin(mix(v, vec4(intBitsToFloat(0x7f800000)), isnan(v))));
}

#endif
