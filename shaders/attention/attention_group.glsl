// A tile of rows for a workgroup, which has the scores of a chunk in the memory that it shares. Its
// sets of `span` members have `each` rows of their own: a member has the scores of these rows for
// every span'th 4 keys of a chunk, then sums `columns` texels of their values. Where a set has more
// members than it takes for all texels, several share a texel and take the keys of a chunk in turns.
#define MOST_ROWS 4
#define MOST_COLUMNS 4
#include "attention_tile.glsl"
CASE(17, span)

// Members of a group, and texels of the scores of a chunk (vkrt/ops/attention_tile.py): powers of two.
// Drivers check no index of shared memory, and parameters may come from a damaged file.
#define MOST_MEMBERS 64
#define SCORES 256
shared vec4 tops[MOST_MEMBERS];
shared vec4 scores[SCORES];
#define TOP(number) tops[(number) & (MOST_MEMBERS - 1)]
#define SCORE(m, t) scores[((set * each + (m)) * chunk + (t)) & (SCORES - 1)]
#define PART(m, k, number) \
  scores[(((m) * columns + (k)) * int(gl_WorkGroupSize.x) + (number)) & (SCORES - 1)]

void main() {
  int member = int(gl_LocalInvocationID.x), set = member / span, place_in_set = member % span;
  int height = each * (int(gl_WorkGroupSize.x) / span), width = span * columns;
  int number = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  // Of a whole group; it comes to all barriers.
  bool is_there = number < tiles_of(height, width);
  Tile tile = tile_at(is_there ? number : 0, height, width);
  int last = is_there ? tile.last : -1, chunk = SCORES / height;
  // Members that have all texels, texels of each of them apart; members that share a texel.
  int apart = (min(Z - tile.texel, width) + columns - 1) / columns, shares = max(span / apart, 1);
  ivec2 share = divided(place_in_set, apart);
  int texel = tile.texel + share.y;

  Row row[MOST_ROWS];
  vec4 found[MOST_ROWS][MOST_COLUMNS], top = vec4(MINUS_INFINITY), total = vec4(0);
  EACH_ROW(m) {
    row[m] = row_of(tile, tile.row + set * each + m);
    EACH_COLUMN(k) found[m][k] = vec4(0);
  }
  for (int begin = 0; begin <= last; begin += 4 * chunk) {
    int count = min(chunk, (last - begin) / 4 + 1);
    vec4 highest = vec4(MINUS_INFINITY);
    for (int t = place_in_set; t < count; t += span) {
      int key = begin + 4 * t, place[4];
      [[unroll]] for (int c = 0; c < 4; c++) place[c] = place_of_key(tile, key + c);
#ifdef CACHE_IN_8_BITS
      READ_QUANTIZATIONS(of_keys, keys, place)
#define KEY(c, z) NUMBERS(keys, place[c], z, of_keys.zero_points[c])
#else
#define KEY(c, z) LOAD_FLAT(keys, place[c] + z)
#endif
      vec4 sum[MOST_ROWS];
      EACH_ROW(m) sum[m] = vec4(0);
      for (int z = 0; z < Z; z++) {
        vec4 k[4];
        [[unroll]] for (int c = 0; c < 4; c++) k[c] = KEY(c, z);
        EACH_ROW(m) {
          vec4 q = LOAD_AS(query, NEXT(row[m].place, z), DTYPE_OUT);
          sum[m] += PRODUCTS(q, k);
        }
      }
      EACH_ROW(m) {
        vec4 v = scale * sum[m];
#ifdef CACHE_IN_8_BITS
        v *= of_keys.scales;
#endif
        v = with_mask(v, row[m].mask, key, row[m].last);
        highest[m] = max(highest[m], largest(v));
        SCORE(m, t) = v;
      }
    }
    TOP(member) = highest;
    barrier();
    highest = top;
    for (int other = 0; other < span; other++) highest = max(highest, TOP(set * span + other));
    vec4 base;
    EACH_ROW(m) {
      base[m] = base_of(highest[m]);
      float rest = rest_of_sums(top[m], base[m]);
      total[m] *= rest;
      EACH_COLUMN(k) found[m][k] *= rest;
    }
    top = highest;
    for (int t = place_in_set; t < count; t += span) {
      EACH_ROW(m) {
        vec4 v = exponents(SCORE(m, t), base[m], begin + 4 * t, row[m].last);
        total[m] += dot(v, vec4(1));
        SCORE(m, t) = v;
      }
    }
    barrier();
    if (share.x >= shares) count = 0;
    for (int t = share.x; t < count; t += shares) {
      vec4 weights[MOST_ROWS];
      EACH_ROW(m) weights[m] = SCORE(m, t);
      int place[4];
      [[unroll]] for (int c = 0; c < 4; c++) place[c] = place_of_key(tile, begin + 4 * t + c);
#ifdef CACHE_IN_8_BITS
      READ_QUANTIZATIONS(of_values, values, place)
      EACH_ROW(m) weights[m] *= of_values.scales;
#define VALUE(c, z) NUMBERS(values, place[c], z, of_values.zero_points[c])
#else
#define VALUE(c, z) LOAD_FLAT(values, place[c] + z)
#endif
      EACH_COLUMN(k) {
        int z = k == 0 ? texel : min(texel + apart * k, Z - 1);
        vec4 v[4];
        [[unroll]] for (int c = 0; c < 4; c++) v[c] = VALUE(c, z);
        EACH_ROW(m) found[m][k] += WEIGHTED(weights[m], v);
      }
    }
    barrier();
  }
  // Sums of members that share texels, and of all keys, are put together. No loop stands in one that
  // is to be unrolled, which drivers of Mali would leave then, with its arrays in memory.
  TOP(member) = total;
  EACH_ROW(m) EACH_COLUMN(k) PART(m, k, member) = found[m][k];
  barrier();
  total = vec4(0);
  for (int other = 0; other < span; other++) total += TOP(set * span + other);
  for (int other = 1; other < shares; other++)
    EACH_ROW(m) EACH_COLUMN(k) found[m][k] += PART(m, k, member + other * apart);
  if (!is_there || share.x > 0) return;
  EACH_ROW(m) EACH_COLUMN(k) found[m][k] *= factor_of(top[m], total[m]);
  // Drivers on CPUs take long to compile a store: there is one, in a loop.
  for (int m = 0; m < min(each, tile.end - tile.row - set * each); m++) {
    for (int k = 0; k < columns && texel + apart * k < Z; k++) {
      vec4 v = found[0][0];
      POSITION place = row[0].place;
      EACH_ROW(other) {
        if (m == other) place = row[other].place;
        EACH_COLUMN(another) if (m == other && k == another) v = found[other][another];
      }
      int z = texel + apart * k;
      STORE(result, NEXT(place, z), MASKED(v, z, size));
    }
  }
}
