// How a row is quantized to 8 bits: 0 and its range go onto whole numbers from `lowest` to
// `highest`, parameters of the including shader, which also has `smallest_scale`.

struct Steps {
  float size;
  float zero_point;
};

// For a row with these bounds, each the least or the most of four.
Steps steps_of(vec4 low, vec4 high) {
  float bottom = min(min(low.x, low.y), min(low.z, low.w));
  float top = max(max(high.x, high.y), max(high.z, high.w));
  float size = max((top - bottom) / (highest - lowest), smallest_scale);
  return Steps(size, clamp(lowest - roundEven(bottom / size), lowest, highest));
}
