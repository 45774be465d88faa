// Caches of keys and values, and those in 8 bits of variants that read or write i8.
//
// A head of a row of a cache has HEAD_TEXELS texels. In 8 bits the first of them says what the others
// mean: element = (q - zero_point) * scale, of numbers q from -128 to 127. Its first byte is the zero
// point, the others are the upper 24 bits of the scale as a float, whose lower 8 are zeros.
//
// The numbers cover everything from the least element, or 0, to the largest, or 0: an element is off by
// half of the scale at most, which is 1 / 510 of that, and 0 stays 0. A scale below 2^-100 is 0, and so
// are all elements then. Where one is infinite or no number, the scale is no number, and so none of the
// head is.

#if defined(DTYPE_i8) || defined(DTYPE_OUT_i8)
#define CACHE_IN_8_BITS
#define HEAD_TEXELS (Z + 1)

struct Quantization {
  int zero_point;
  float scale;
};
Quantization quantization_of(ivec4 texel) {
  return Quantization(texel.x, uintBitsToFloat(pack_i8(texel) & 0xffffff00u));
}

// The first texel of a head with these bounds; `magnitudes` are bits of floats, the largest among them.
uint first_texel(vec4 low, vec4 high, uvec4 magnitudes) {
  uint largest = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  if (largest >= 0x7f800000u) return 0x7fc00000u;
  float least = min(min(low.x, low.y), min(low.z, low.w));
  float most = max(max(high.x, high.y), max(high.z, high.w));
  // Up to the next float that has the zeros
  uint scale = floatBitsToUint(most / 255.0 - least / 255.0) + 0xffu & 0xffffff00u;
  if (scale < 0x0d800000u) return 0u;
  int zero_point = -128 - int(roundEven(least / uintBitsToFloat(scale)));
  return scale | uint(zero_point) & 0xffu;
}

// Another texel of a head with this first one.
uint further_texel(vec4 v, uint first) {
  if (first == 0u || first == 0x7fc00000u) return 0u;
  Quantization head = quantization_of(unpack_i8(first));
  return pack_i8(clamp(ivec4(roundEven(v / head.scale)) + head.zero_point, -128, 127));
}

// Writes a head to its place in a cache; TEXEL(z) is texel z of it.
#define WRITE_HEAD(cache, place, TEXEL) \
  { \
    vec4 low = vec4(0), high = vec4(0); \
    uvec4 magnitudes = uvec4(0); \
    for (int z = 0; z < Z; z++) { \
      vec4 v = TEXEL(z); \
      low = min(low, v); \
      high = max(high, v); \
      magnitudes = max(magnitudes, floatBitsToUint(v) & 0x7fffffffu); \
    } \
    uint head = first_texel(low, high, magnitudes); \
    int begin = place; \
    cache[begin] = head; \
    for (int z = 0; z < Z; z++) cache[begin + 1 + z] = further_texel(TEXEL(z), head); \
  }
#else
#define HEAD_TEXELS Z
#endif

// Where texel i of new rows goes in a cache, of which a row is `slab` texels.
//   row            where the first of `count` new rows goes, of the `rows` of each item of a batch
//   further        items of the batch beyond the first
int cache_place(int i, int row, int count, int rows, int slab, int further) {
  int place = row * slab + i;
  return further == 0 ? place : place + divided(i, count * slab).x * (rows - count) * slab;
}
