// u / v for every v: where |v| is beyond 2^126, Vulkan lets a driver take 0 for 1 / v.
vec4 quotient(vec4 u, vec4 v) {
  vec4 scale = mix(vec4(1.0), vec4(5.42101086e-20), greaterThan(abs(v), vec4(1.84467441e19)));
  return (u * scale) / (v * scale);
}
