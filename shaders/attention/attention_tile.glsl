// Tiles of rows, as attention_tile.comp does them: heads that share keys are neighbours, `group` of
// them, and row r is query r / group of head r % group of the group.
//
// A tile goes over the keys chunk by chunk. Of each row it knows the largest score so far, the sum of
// exp(score - largest), and the sum of values with these factors. Where a chunk has a larger score
// both sums are multiplied by exp(largest before - largest). So no score is kept behind its chunk.

// How many rows have their scores and sums in the registers of an invocation; how many texels of
// their results, `MOST_ROWS` and `MOST_COLUMNS` at most.
CASE(15, each)
CASE(16, columns)
#define EACH_ROW(m) [[unroll]] for (int m = 0; m < MOST_ROWS; m++) if (m < each)
#define EACH_COLUMN(k) [[unroll]] for (int k = 0; k < MOST_COLUMNS; k++) if (k < columns)

// The item of the batch and the head of the cache; the tile's first row and the one behind its last;
// the first texel of the results that it makes. Heads of keys before those of the item's first row,
// and up to its own; the last key that the first query sees, and the last one that a row of it sees.
struct Tile { int item, head, row, end, texel, before, first_last, last; };

int parts_of(int width) { return (Z + width - 1) / width; }
// How many tiles there are, of so many rows and texels of the result.
int tiles_of(int height, int width) {
  return (further + 1) * kv_heads * ((queries * group + height - 1) / height) * parts_of(width);
}
Tile tile_at(int number, int height, int width) {
  ivec2 part = divided(number, parts_of(width), IS_CONSTANT(Z));
  ivec2 place = divided(part.x, (queries * group + height - 1) / height);
  ivec2 owner = further == 0 ? ivec2(0, place.x) : DIVIDED(place.x, kv_heads);
  int row = place.y * height, end = min(row + height, queries * group);
  int first_last = first_last_key();
  return Tile(owner.x, owner.y, row, end, part.y * width, owner.x * rows * kv_heads + owner.y,
              first_last, first_last + more_keys() * QUOTIENT(end - 1, group));
}

// A row: where its query is, and its result; the last key that it sees; the texel where its mask begins.
struct Row { POSITION place; int last, mask; };
Row row_of(Tile tile, int row) {
  ivec2 place = DIVIDED(min(row, tile.end - 1), group);
  int head = tile.head * group + place.y;
  return Row(AT(head, tile.item * queries + place.x, 0, kv_heads * group, Z),
             tile.first_last + more_keys() * place.x,
             tile.item * mask_item + head * mask_head + place.x * mask_query);
}

// The first texel of a key, or of a value, of the tile's head.
int place_of_key(Tile tile, int key) {
  return (min(key, tile.last) * kv_heads + tile.before) * HEAD_TEXELS;
}
// Of the keys from `key` on, those up to the last one.
bvec4 are_seen(int key, int last) { return lessThanEqual(key + ivec4(0, 1, 2, 3), ivec4(last)); }
// Scores with those of a mask that begins at texel `begin`, and -inf for keys that are not seen.
vec4 with_mask(vec4 v, int begin, int key, int last) {
  if (mask_kind != 0) {
    vec4 m = LOAD_MASK(begin + min(key, rows - 1) / 4);
    if (mask_kind == ADDED) v += m;
    if (mask_kind == CHOOSES) v = mix(v, vec4(MINUS_INFINITY), equal(m, vec4(0)));
  }
  return mix(vec4(MINUS_INFINITY), v, are_seen(key, last));
}
vec4 exponents(vec4 v, float base, int key, int last) {
  return mix(vec4(0), exp(v - base), are_seen(key, last));
}
float largest(vec4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
// What the largest score is taken for where all are -inf, so that no exponent is a NaN.
float base_of(float top) { return top == MINUS_INFINITY ? 0.0 : top; }
// What sums are multiplied by where the largest score becomes `base`.
float rest_of_sums(float top, float base) {
  return top == MINUS_INFINITY ? 0.0 : exp(top - base);
}
// What a row is multiplied by at the end: zero where a mask hides all keys from it.
float factor_of(float top, float sum) {
  return mask_kind != 0 && top == MINUS_INFINITY ? 0.0 : 1.0 / sum;
}

// 4 texels by 4 factors
#define WEIGHTED(by, v) (by.x * v[0] + by.y * v[1] + by.z * v[2] + by.w * v[3])
#define PRODUCTS(q, k) vec4(dot(q, k[0]), dot(q, k[1]), dot(q, k[2]), dot(q, k[3]))

#ifdef CACHE_IN_8_BITS
// Of 4 heads of keys or values: what their numbers mean.
struct Quantizations { ivec4 zero_points; vec4 scales; };
#define READ_QUANTIZATIONS(name, cache, place) \
  Quantizations name; \
  [[unroll]] for (int c = 0; c < 4; c++) { \
    Quantization one = quantization_of(LOAD_FLAT(cache, place[c])); \
    name.zero_points[c] = one.zero_point; \
    name.scales[c] = one.scale; \
  }
// Texel z of a head, before its scale.
#define NUMBERS(cache, place, z, zero_point) vec4(LOAD_FLAT(cache, (place) + 1 + (z)) - (zero_point))
#endif
