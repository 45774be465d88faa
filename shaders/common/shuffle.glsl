// How the invocations of a register tile get the weights that they multiply with: each loads all of
// them; or, in variants for the feature shuffle, the 8 lanes of a part of a subgroup have the same
// columns and rows of their own. Each loads the weights of every eighth column, and gets the others
// by a shuffle. Of 4 rows by 16 columns that is 6 loads for 64 sums, of 8 by 8 without it are 16.
//
// On lavapipe a shuffle by a constant is one or two instructions and a load is a call (a broadcast
// is a loop over the lanes on 22.3). A lane that hands weights round has to be active: none of the
// 8 returns before the others, and all of them go round a loop equally often.
//
//   LANES                  that have the same columns; 1 without the feature
//   numbered()             the invocation's number: those with the same number / LANES share columns
//   OF_ALL_LANES(v, F)     v becomes the least (F is min) or the largest (max) of all lanes
//   LINES(n), LINE(j)      how many of n lines of a matrix an invocation loads from, and which of
//                          them is the j-th of those
//   TEXELS_OF(w, n, LOAD)  loads what this invocation has to of n texels, by LOAD(j), into w
//   TEXELS_AS(TYPE, w, n, LOAD)   the same of texels that are no T4
//   TEXEL_OF(w, c, LOAD)   texel c of the n

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

// Lane `from` of the 8 in its subgroup: a constant where they are all of it.
uint lane_of(int from) {
  return gl_SubgroupSize == LANES
    ? uint(from) : gl_SubgroupInvocationID & ~uint(LANES - 1) | uint(from);
}
#define HANDED(v, from) subgroupShuffle(v, lane_of(from))

#define OF_ALL_LANES(v, F) \
  { int own = v; [[unroll]] for (int j = 0; j < LANES; j++) v = F(v, HANDED(own, j)); }

#define LINES(n) ((n) / LANES)
#define LINE(j) (LANES * (j) + lane())
#define TEXELS_AS(TYPE, w, n, LOAD) \
  TYPE w[LINES(n)]; \
  [[unroll]] for (int j = 0; j < LINES(n); j++) w[j] = LOAD(j);
#define TEXEL_OF(w, c, LOAD) HANDED(w[(c) / LANES], (c) % LANES)

#else

#define LANES 1
int numbered() { return invocation(); }
#define OF_ALL_LANES(v, F)
#define LINES(n) (n)
#define LINE(j) (j)
#define TEXELS_AS(TYPE, w, n, LOAD)
#define TEXEL_OF(w, c, LOAD) LOAD(c)

#endif

#define TEXELS_OF(w, n, LOAD) TEXELS_AS(T4, w, n, LOAD)
