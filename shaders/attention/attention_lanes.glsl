// A tile of rows for 8 lanes of a subgroup that hand round what they load (shuffle.glsl): nobody waits
// for another. Each loads the queries of one row, has the scores of 4 keys of a chunk for all rows,
// and sums `columns` texels of the values, 8 apart. Times 4 keys that is 5 loads for 32 sums.
#include "shuffle.glsl"
#define MOST_ROWS LANES
#define MOST_COLUMNS 4
#define CHUNK (4 * LANES)
#include "attention_tile.glsl"

#define OTHER(v, distance) subgroupShuffle(v, gl_SubgroupInvocationID ^ (distance))
// v becomes what all lanes have, put together by COMBINE.
#define JOINED(v, COMBINE) \
  v = COMBINE(v, OTHER(v, 4u)); \
  v = COMBINE(v, OTHER(v, 2u)); \
  v = COMBINE(v, OTHER(v, 1u));
#define ADDED_UP(a, b) ((a) + (b))

void main() {
  int i = numbered(), width = LANES * columns;
  if (i >= LANES * tiles_of(each, width)) return;
  Tile tile = tile_at(i / LANES, each, width);
  Row own_row = row_of(tile, tile.row + lane());

  vec4 found[MOST_ROWS][MOST_COLUMNS];
  float top[MOST_ROWS], total[MOST_ROWS];
  EACH_ROW(m) {
    top[m] = MINUS_INFINITY;
    total[m] = 0.0;
    EACH_COLUMN(k) found[m][k] = vec4(0);
  }
  for (int begin = 0; begin <= tile.last; begin += CHUNK) {
    int key = begin + 4 * lane(), place[4];
    [[unroll]] for (int c = 0; c < 4; c++) place[c] = place_of_key(tile, key + c);
#ifdef CACHE_IN_8_BITS
    READ_QUANTIZATIONS(of_keys, keys, place)
    READ_QUANTIZATIONS(of_values, values, place)
#define KEY(c, z) NUMBERS(keys, place[c], z, of_keys.zero_points[c])
#else
#define KEY(c, z) LOAD_FLAT(keys, place[c] + z)
#endif
    vec4 scores[MOST_ROWS];
    EACH_ROW(m) scores[m] = vec4(0);
    for (int z = 0; z < Z; z++) {
      vec4 k[4], own = LOAD_AS(query, NEXT(own_row.place, z), DTYPE_OUT);
      [[unroll]] for (int c = 0; c < 4; c++) k[c] = KEY(c, z);
      EACH_ROW(m) {
        vec4 q = HANDED(own, m);
        scores[m] += PRODUCTS(q, k);
      }
    }
    EACH_ROW(m) {
      int last = HANDED(own_row.last, m);
      vec4 v = scale * scores[m];
#ifdef CACHE_IN_8_BITS
      v *= of_keys.scales;
#endif
      v = with_mask(v, HANDED(own_row.mask, m), key, last);
      float highest = largest(v);
      JOINED(highest, max)
      highest = max(highest, top[m]);
      float base = base_of(highest), rest = rest_of_sums(top[m], base);
      v = exponents(v, base, key, last);
      top[m] = highest;
      total[m] = rest * total[m] + dot(v, vec4(1));
      EACH_COLUMN(k) found[m][k] *= rest;
#ifdef CACHE_IN_8_BITS
      v *= of_values.scales;
#endif
      scores[m] = v;
    }
    for (int from_lane = 0; from_lane < LANES && begin + 4 * from_lane <= tile.last; from_lane++) {
      [[unroll]] for (int c = 0; c < 4; c++)
        place[c] = place_of_key(tile, begin + 4 * from_lane + c);
#ifdef CACHE_IN_8_BITS
      ivec4 zero_points = HANDED(of_values.zero_points, from_lane);
#define VALUE(c, z) NUMBERS(values, place[c], z, zero_points[c])
#else
#define VALUE(c, z) LOAD_FLAT(values, place[c] + z)
#endif
      vec4 weights[MOST_ROWS];
      EACH_ROW(m) weights[m] = HANDED(scores[m], from_lane);
      EACH_COLUMN(k) {
        int z = min(tile.texel + LANES * k + lane(), Z - 1);
        vec4 v[4];
        [[unroll]] for (int c = 0; c < 4; c++) v[c] = VALUE(c, z);
        EACH_ROW(m) found[m][k] += WEIGHTED(weights[m], v);
      }
    }
  }
  EACH_ROW(m) {
    JOINED(total[m], ADDED_UP)
    EACH_COLUMN(k) found[m][k] *= factor_of(top[m], total[m]);
  }
  // Drivers take long to compile a store (25 ms each on lavapipe 25.0.7): there is one, in a loop.
  for (int m = 0; m < tile.end - tile.row; m++) {
    Row row = row_of(tile, tile.row + m);
    for (int k = 0; k < columns; k++) {
      int z = tile.texel + LANES * k + lane();
      if (z >= Z) break;
      vec4 v = found[0][0];
      EACH_ROW(other) EACH_COLUMN(another) v = m == other && k == another ? found[other][another] : v;
      STORE(result, NEXT(row.place, z), MASKED(v, z, size));
    }
  }
}
