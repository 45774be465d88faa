// What the kernels of the first stage of a normalization share: how many elements there are, their mean, and the sum of the
// squares of their distances from it, for each part of each set of elements.
//
// A set is `rows` rows of texels of the source, of which `across` sets share the packed dimension,
// `width` elements each.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, sets)
PARAM(4, across)
PARAM(5, rows)
PARAM(6, width)
PARAM(7, chunk)
PARAM(8, parts)
PARAM(9, result_X)

// Where a set lies: its first texel, the texels of one of its rows, and its elements of the packed
// dimension.
struct Set { int base, count, low, high; };

Set set_of(int number) {
  ivec2 place = DIVIDED(number, across);
  int low = place.y * width, high = low + width;
  int first = low >> 2;
  return Set(place.x * rows * Z + first, ((high - 1) >> 2) - first + 1, low, high);
}

// The set's texel that comes next, and its place in its row.
int at, column;

void start(Set s, int t) {
  ivec2 row = divided(t, s.count);
  column = row.y;
  at = s.base + row.x * Z + column;
}

// Which lanes of the next texel are inside of the set.
vec4 inside(Set s) {
  ivec4 e = ((s.low >> 2) + column) * 4 + ivec4(0, 1, 2, 3);
  return vec4(greaterThanEqual(e, ivec4(s.low))) * vec4(lessThan(e, ivec4(s.high)));
}

// The next texel less `origin`, zero outside of the set.
vec4 next_texel(Set s, float origin) {
  vec4 v = LOAD(source, AT_LINEAR(at, X, Y, Z)) - origin;
  v = mix(vec4(0), v, notEqual(inside(s), vec4(0)));
  column++;
  at += column == s.count ? Z - s.count + 1 : 1;
  column = column == s.count ? 0 : column;
  return v;
}

float across_lanes(vec4 v) { return v.x + v.y + (v.z + v.w); }

// What is found of set and part number i, whose squares of distances from the mean have this sum.
void put(int i, float elements, float mean, float squares) {
  STORE(result, AT_ROW(i, 0, result_X, 1), vec4(elements, mean, squares, 0));
}
