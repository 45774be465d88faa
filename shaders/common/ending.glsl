// How convolutions and products end: plus a bias, limited to a range. Whether they have those are
// parameters like others (`has_bias`, `has_clamp`, `low`, `high`), so that layers with and without
// them share pipelines.

// Texel z of the bias, or zeros. Where there is none, a single texel of anything is bound, NaN too.
vec4 bias_at(int z) {
  vec4 v = LOAD_FLAT(bias, has_bias != 0 ? z : 0);
  return has_bias != 0 ? v : vec4(0);
}

vec4 limited(vec4 v) { return has_clamp != 0 ? clamp(v, low, high) : v; }
