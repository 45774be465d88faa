// What 8 bits hold of an element that is quantized with this scale and zero point.
vec4 through_8_bits(vec4 v, float scale, float zero_point) {
  vec4 steps = roundEven(v * (1.0 / scale)) + zero_point;
  return (clamp(steps, -128.0, 127.0) - zero_point) * scale;
}
