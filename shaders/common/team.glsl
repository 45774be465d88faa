// Teams: invocations of a workgroup that share a row of texels. Each goes through every team'th texel
// of it, and what they find is put together through shared memory.
//
// The order of that is fixed, so the results are the same bits in every run. The variants for
// subgroups do it in the order of the device's own operations; a team is a whole group there, as
// Vulkan does not say which invocations of a group are a subgroup.
//
//   find_team()            finds which team this is, `team`, and which `member` of it; first in main()
//   SHARED(k, begin, end)  a loop over the numbers of [begin, end) that are this member's
//   team_sum(v)            the sum over the members of a team, the same for all of them; every
//                          invocation of the group has to come to this call
//
// The including shader defines TEAM, the id of the first of two parameters, and T4, what is reduced.

#if defined(FEATURE_SUBGROUPS)
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

// Invocations of a workgroup (vkrt.work.target.GROUP).
#define GROUP 64
// Of a team: a power of two, up to GROUP.
PARAM(TEAM, members)
// How far the members of a team are apart: 1, or the number of teams of a group, where neighbours
// read neighbouring texels of different rows.
PARAM(TEAM + 1, apart)

int team, member;

void find_team() {
  int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  int place = int(gl_LocalInvocationID.x);
#if defined(FEATURE_SUBGROUPS)
  team = group;
  member = place;
#else
  // Powers of two, of which only the shift is not known.
  int shift = findMSB(apart == 1 ? members : apart), rest = place & ((1 << shift) - 1);
  member = apart == 1 ? rest : place >> shift;
  team = group * (GROUP / members) + (apart == 1 ? place >> shift : rest);
#endif
}

#if defined(FEATURE_SUBGROUPS)
#define MEMBERS GROUP
#else
#define MEMBERS members
#endif
#define SHARED(k, begin, end) for (int k = (begin) + member; k < (end); k += MEMBERS)

shared T4 exchanged[GROUP];

#if defined(FEATURE_SUBGROUPS)

// What the members have found, put together by COMBINE and within a subgroup by OF_SUBGROUP.
#define JOIN(v, OF_SUBGROUP, COMBINE) \
  T4 of_subgroup = OF_SUBGROUP(v); \
  barrier(); \
  if (subgroupElect()) exchanged[gl_SubgroupID] = of_subgroup; \
  barrier(); \
  T4 joined = exchanged[0]; \
  for (uint i = 1; i < gl_NumSubgroups; i++) joined = COMBINE(joined, exchanged[i]); \
  return joined;

#else

// Drivers check no index of shared memory, and parameters may come from a damaged file.
int within(int place) { return place & (GROUP - 1); }

#define JOIN(v, OF_SUBGROUP, COMBINE) \
  int place = int(gl_LocalInvocationID.x); \
  barrier(); \
  exchanged[place] = v; \
  for (int half_ = members >> 1; half_ > 0; half_ >>= 1) { \
    barrier(); \
    if (member < half_) \
      exchanged[place] = COMBINE(exchanged[place], exchanged[within(place + half_ * apart)]); \
  } \
  barrier(); \
  return exchanged[within(place - member * apart)];

#endif

#define ADDED(u, v) ((u) + (v))
T4 team_sum(T4 v) { JOIN(v, subgroupAdd, ADDED) }
