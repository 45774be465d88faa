// A walk ahead over lines of 4-bit weights in the order of memory.
//
// Lanes read lines that are far apart, a texel of each at a time. Processors fill their caches ahead
// of walks in the order of memory only, so that such a walk first costs less than the waiting that
// it saves (measured: 0.85 of the time of a language model's step). Eight neighbours walk over all
// of their lines together before they use any.
//
// The including shader has the parameters `reads_ahead`, whether it does so, and `nothing`: 0, which
// compilers do not know. Without a use of what it reads the walk would be left out.

#define NEIGHBOURS 8
// Texels of the weight in a line of a processor's cache.
#define CACHE_LINE 4

// Walks over the lines of invocation i and its neighbours, LINES to an invocation, of the `columns`
// lines of a weight; adds 0 to `zero`.
#define READ_AHEAD(weight, i, columns, zero) \
  if (reads_ahead != 0) { \
    int lane = (i) & (NEIGHBOURS - 1), begin = LINES * ((i) - lane), seen = 0; \
    int stop = min(begin + LINES * NEIGHBOURS, columns) * texels; \
    for (int t = begin * texels + CACHE_LINE * lane; t < stop; t += CACHE_LINE * NEIGHBOURS) \
      seen |= LOAD_WORDS(weight, t).x; \
    zero += float(seen & nothing); \
  }
