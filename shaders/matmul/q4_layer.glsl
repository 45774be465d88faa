// A weight that the row of q4_row.glsl is multiplied with: LAYER is what its names begin with.

// Adds the products of the row's part that has been read, for texel t of the lines.
void PASTE(LAYER, add)(int t, inout vec4 sum[TILE_N]) {
  int group = GROUP_SCALES(t);
  [[unroll]] for (int n = 0; n < TILE_N; n++) {
    // The texels of 4 columns are fetched before any is used: memory then answers them together.
    ivec4 word[4];
    [[unroll]] for (int c = 0; c < 4; c++)
      word[c] = LOAD_WORDS(PASTE(LAYER, weight), line[4 * n + c] + t);
    vec4 products = vec4(0);
    [[unroll]] for (int c = 0; c < 4; c++) {
      [[unroll]] for (int k = 0; k < 4; k++)
        products[c] += dot(row[2 * k], four_of(word[c][k]))
            + dot(row[2 * k + 1], last_four_of(word[c][k]));
    }
    vec4 scale = LOAD_SCALES(PASTE(LAYER, scales), group + scales_of[n]);
    sum[n] += scale * (products - excess);
  }
}

// Texel z of the result, with its bias.
vec4 PASTE(LAYER, ended)(vec4 sum, int z) {
  // Where there is none, a texel of anything is bound.
  vec4 offset = texelFetch(PASTE(LAYER, bias), has_bias != 0 ? z : 0);
  return has_bias != 0 ? sum + offset : sum;
}

#define NEIGHBOURS 8
// Texels of a weight in a line of a processor's cache.
#define CACHE_LINE 4

// A walk over the lines of invocation i and of its neighbours, before they use any. Lanes read lines
// that are far apart, a texel of each at a time, and processors fill their caches ahead of walks in
// the order of memory only, so that such a walk first costs less than the waiting that it saves
// (measured: 0.85 of the time of a language model's step). It returns 0: without a use of what it
// reads the walk would be left out.
float PASTE(LAYER, ahead)(int i) {
  if (reads_ahead == 0) return 0.0;
  int lane = i & (NEIGHBOURS - 1), first = 4 * TILE_N * (i - lane), seen = 0;
  int stop = min(first + 4 * TILE_N * NEIGHBOURS, columns) * texels;
  for (int t = first * texels + CACHE_LINE * lane; t < stop; t += CACHE_LINE * NEIGHBOURS)
    seen |= LOAD_WORDS(PASTE(LAYER, weight), t).x;
  return float(seen & nothing);
}
#undef LAYER
