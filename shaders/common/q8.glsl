// Quantized numbers: a whole number q of 8 bits stands for the real number (q - zero) * scale.
//
// Real numbers are computed in fp32, step by step as the operators say and never contracted, so that
// the same 8 bits come out on every device.

vec4 real_of(ivec4 q, int zero, float scale) { return vec4(q - zero) * scale; }

// The nearest quantized numbers, ties to even, between `least` and `most`.
ivec4 quantized(vec4 v, float inverse, int zero, int least, int most) {
  return ivec4(clamp(roundEven(v * inverse) + float(zero), float(least), float(most)));
}
ivec4 quantized(vec4 v, float inverse, int zero) { return quantized(v, inverse, zero, -128, 127); }

// Quantized numbers under another scale and zero, limited to a range in between.
ivec4 requantized(ivec4 q, int zero, float scale, float low, float high, float inverse,
                  int new_zero) {
  return quantized(clamp(real_of(q, zero, scale), low, high), inverse, new_zero);
}
