// How elements are taken out of words of 4-bit weights, 8 to a word. The including shader has the
// parameter `high_first`: whether an even element is in the high half of its byte.

#define IN_ORDER(v) (high_first != 0 ? (v).yxwz : (v))

// The first four elements of a word, and the last four, as multiples: what they are multiplied with
// is multiplied by UNIT or LAST_UNIT. That saves shifts, and is exact.
const vec4 UNIT = vec4(1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0);
const vec4 LAST_UNIT = vec4(1.0 / 65536.0, 1.0 / 1048576.0, 1.0 / 16777216.0, 1.0);
vec4 four_of(int word) { return vec4(ivec4(word) & ivec4(0xf, 0xf0, 0xf00, 0xf000)); }
vec4 last_four_of(int word) {
  return vec4(ivec4(ivec3(word) & ivec3(0xf0000, 0xf00000, 0xf000000), int(uint(word) >> 28)));
}
