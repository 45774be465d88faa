// Where a strided copy reads, for the elements (padding not counted) or the texels of a result in
// their order: number e is decoded over `dims` dimensions, innermost first; it is found at the sum
// of index_k * stride_k.
//
// strided_index(e) decodes a number and gives its place, next_strided_index(place) that of the next
// one: mostly an addition, so only the first element of a texel costs divisions.
//
// The including shader defines STRIDED_SIZES, the id of size_0, and may define STRIDED_DIVIDED, how
// numbers are divided; CASE `dims` is up to 8.

#ifndef STRIDED_DIVIDED
#define STRIDED_DIVIDED(e, size) DIVIDED(e, size)
#endif

#define DIMENSION(k) \
  PARAM(STRIDED_SIZES + 2 * k, size_##k) \
  PARAM(STRIDED_SIZES + 1 + 2 * k, stride_##k) \
  int index_##k;
DIMENSION(0)
DIMENSION(1)
DIMENSION(2)
DIMENSION(3)
DIMENSION(4)
DIMENSION(5)
DIMENSION(6)
DIMENSION(7)

#define DECODE(k) \
  if (dims > k) { \
    ivec2 rest = dims == k + 1 ? ivec2(0, e) : STRIDED_DIVIDED(e, size_##k); \
    index_##k = rest.y; \
    place += rest.y * stride_##k; \
    e = rest.x; \
  }
int strided_index(int e) {
  int place = 0;
  DECODE(0) DECODE(1) DECODE(2) DECODE(3) DECODE(4) DECODE(5) DECODE(6) DECODE(7)
  return place;
}

#define ADVANCE(k) \
  if (dims > k) { \
    index_##k += int(carry); \
    place += carry ? stride_##k : 0; \
    carry = dims > k + 1 && index_##k == size_##k; \
    if (dims > k + 1) { \
      place -= carry ? size_##k * stride_##k : 0; \
      index_##k = carry ? 0 : index_##k; \
    } \
  }
int next_strided_index(int place) {
  bool carry = true;
  ADVANCE(0) ADVANCE(1) ADVANCE(2) ADVANCE(3) ADVANCE(4) ADVANCE(5) ADVANCE(6) ADVANCE(7)
  return place;
}
