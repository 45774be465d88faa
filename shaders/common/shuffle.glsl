// How invocations get the weights of a register tile: each loads all of them, or, in variants for the
// feature shuffle, 8 lanes of a subgroup have the same columns. Each of these lanes has rows of its
// own, loads the weights of every eighth column, and gets the others by a shuffle: a tile of 4 rows by
// 32 columns takes 4 loads for 64 sums, where one of 8 by 8 takes 16.
//
// A shuffle by a constant is one or two instructions on lavapipe, where a load is a call. (A broadcast
// is a loop over the lanes on 22.3.) A lane that hands its weights round has to be active: none of the
// 8 returns before the others, or goes round a loop less often.
//
//   LANES                  that share columns, 1 without the feature
//   numbered()             the invocation's number; LANES with a common number / LANES share columns
//   OF_ALL_LANES(v, FUNCTION)   v becomes the least of all lanes' (FUNCTION is min) or the largest (max)
//   LINES(n)               of how many lines of a matrix an invocation loads texels, of n that it needs
//   LINE(j)                which line is number j of those
//   TEXELS_OF(w, n, LOAD)  begins a block that uses texel c of n, LOAD(j) being number j of those
//                          that are loaded here
//   TEXEL_OF(w, c, LOAD)   which is this

#ifdef FEATURE_SHUFFLE

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define LANES 8

// By subgroups: which invocations of a workgroup are one is the driver's choice.
int numbered() {
  int place = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);
  return invocation() - int(gl_LocalInvocationID.x) + place;
}
int lane() { return int(gl_SubgroupInvocationID) % LANES; }

// What lane `from` has. Its number is a constant where a subgroup is no more than these lanes.
uint lane_of(int from) {
  return gl_SubgroupSize == LANES
    ? uint(from) : gl_SubgroupInvocationID & ~uint(LANES - 1) | uint(from);
}
#define HANDED(v, from) subgroupShuffle(v, lane_of(from))

// Makes a variable the least or the largest (FUNCTION is min or max) of all lanes.
#define OF_ALL_LANES(v, FUNCTION) \
  { int own = v; [[unroll]] for (int j = 0; j < LANES; j++) v = FUNCTION(v, HANDED(own, j)); }

#define LINES(n) ((n) / LANES)
#define LINE(j) (LANES * (j) + lane())
#define TEXELS_OF(w, n, LOAD) \
  T4 w[LINES(n)]; \
  [[unroll]] for (int j = 0; j < LINES(n); j++) w[j] = LOAD(j);
#define TEXEL_OF(w, c, LOAD) HANDED(w[(c) / LANES], (c) % LANES)

#else

#define LANES 1
int numbered() { return invocation(); }
#define OF_ALL_LANES(v, FUNCTION)
#define LINES(n) (n)
#define LINE(j) (j)
#define TEXELS_OF(w, n, LOAD)
#define TEXEL_OF(w, c, LOAD) LOAD(c)

#endif
