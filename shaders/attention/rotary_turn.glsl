// Texel i of the tensor SOURCE, turned: a function TURN for rotary.glsl. The including shader defines
// both, LOAD_SOURCE, how the tensor is read, and the parameters of its own that it has: WIDTH and
// HEIGHT (X and Y of its grid) and HEADS.

// The elements that texel z of a row is turned with, from texel `base` on.
vec4 PARTNERS(int base, int z) {
  int half_ = turned >> 1;
  if ((half_ & 3) == 0) {
    int step = 4 * z < half_ ? half_ >> 2 : -(half_ >> 2);
    return LOAD_SOURCE(SOURCE, AT_LINEAR(base + z + step, WIDTH, HEIGHT, Z));
  }
  vec4 v = vec4(0);
  [[unroll]] for (int c = 0; c < 4; c++) {
    int element = min(4 * z + c, turned - 1);
    element += element < half_ ? half_ : -half_;
    v[c] = LOAD_SOURCE(SOURCE, AT_LINEAR(base + (element >> 2), WIDTH, HEIGHT, Z))[element & 3];
  }
  return v;
}

vec4 TURN(int i) {
  ivec2 row_texel = DIVIDED(i, Z);
  int z = row_texel.y;
  int place = REST_OF(QUOTIENT(row_texel.x, HEADS), positions);
  int row = (position_at_most(table_rows - positions) + place) * table_Z;
  vec4 v = LOAD_SOURCE(SOURCE, AT_LINEAR(i, WIDTH, HEIGHT, Z));
  if (opcode == COMPLEX) {
    v = turned_pairs(v, LOAD_TABLE(cosines, row + z));
  } else if (opcode == PAIRS) {
    vec4 cosine = LOAD_TABLE(cosines, row + (z >> 1)), sine = LOAD_TABLE(sines, row + (z >> 1));
    v = turned_pairs(v, (z & 1) == 0 ? vec4(cosine.x, sine.x, cosine.y, sine.y)
                                     : vec4(cosine.z, sine.z, cosine.w, sine.w));
  } else if (opcode == HALVES && 4 * z < turned) {
    ivec4 element = 4 * z + ivec4(0, 1, 2, 3);
    vec4 other = PARTNERS(i - z, z);
    other = mix(other, -other, lessThan(element, ivec4(turned >> 1)));
    vec4 rotated = v * LOAD_TABLE(cosines, row + z) + other * LOAD_TABLE(sines, row + z);
    v = mix(v, rotated, lessThan(element, ivec4(turned)));
  }
  return mask_padding(v, VALID(z, size));
}
#undef SOURCE
#undef TURN
#undef PARTNERS
#undef WIDTH
#undef HEIGHT
#undef HEADS
#undef LOAD_SOURCE
