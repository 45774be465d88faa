// Tiles of rows (see attention.glsl), as attention_scores.comp and attention_values.comp do them:
// `tile` rows times a texel, of the keys or of the values, an invocation.
//
// In variants for the feature shuffle (shuffle.glsl) the 8 lanes of a part of a subgroup have the
// same 8 rows and texels of their own. Each loads of one row, and gets the other rows by a shuffle:
// times 4 keys that is 5 loads for 32 sums, of 4 by 4 without it are 8 for 16.
#extension GL_EXT_control_flow_attributes : require
#include "shuffle.glsl"
#ifdef FEATURE_SHUFFLE
#define MOST_ROWS LANES
#else
#define MOST_ROWS 4
#endif
#define EACH_ROW(m) [[unroll]] for (int m = 0; m < MOST_ROWS; m++) if (m < tile)

// PUT_ROWS(here, sum, PUT): PUT(row, v), which stores, for the rows of a tile and their sums.
//
// Drivers take long to compile a store (25 ms each on lavapipe 25.0.7), so that of 8 rows there is
// one, in a loop. The loop of one round in it is for lavapipe 22.3.6: `sum`, whose numbers depend on
// it, stays an array in the module, and the driver's code for that takes 0.85 of the time.
#ifdef FEATURE_SHUFFLE
#define PUT_ROWS(here, sum, PUT) \
  for (int begin = here.row; begin < here.end; begin++) { \
    [[unroll]] for (int once = 0; once < 1; once++) { \
      if (begin + once >= here.end) break; \
      vec4 v = sum[once]; \
      [[unroll]] for (int m = 1; m < MOST_ROWS; m++) v = begin == here.row + m ? sum[m + once] : v; \
      PUT(begin + once, v) \
    } \
  }
#else
#define PUT_ROWS(here, sum, PUT) \
  EACH_ROW(m) { \
    if (here.row + m < here.end) { PUT(here.row + m, sum[m]) } \
  }
#endif

// The head of the cache (see item_head), the tile's first row and the one behind its last; its first texel.
struct Tile { int head, row, end, texel; };

// Of LANES invocations each; `texels` is how many texels there are, which may be compiled in.
bool is_there(int i, int texels) {
  int tiles = (count * group + tile - 1) / tile;
  return i < LANES * (further + 1) * kv_heads * tiles * ((texels + LANES - 1) / LANES);
}
Tile tile_at(int i, int texels, bool is_constant) {
  int tiles = (count * group + tile - 1) / tile;
  ivec2 place = divided(i / LANES, (texels + LANES - 1) / LANES, is_constant);
  ivec2 head_tile = divided(place.x, tiles);
  int row = head_tile.y * tile;
  return Tile(head_tile.x, row, min(row + tile, count * group), LANES * place.y);
}
