// Parameters of a dispatch: 32-bit integers, each either a specialization constant (sizes of a
// static graph: the driver folds them) or, where the host leaves that unset, a push constant.
// One module serves both; the host decides per dispatch. Floats travel as their bits.
//
//   PARAM(0, width)  PARAM_FLOAT(1, alpha)

#define UNSET 0x80000000
layout(push_constant) uniform PushConstants { int push[32]; };
#define PARAM(i, name) \
  layout(constant_id = i) const int name##_constant = UNSET; \
  int name = name##_constant == UNSET ? push[i] : name##_constant;
#define PARAM_FLOAT(i, name) \
  layout(constant_id = i) const int name##_constant = UNSET; \
  float name = intBitsToFloat(name##_constant == UNSET ? push[i] : name##_constant);
// Always a push constant: what differs between dispatches that should share a pipeline.
#define PUSHED(i, name) int name = push[i];
// Always a specialization constant: what selects code, such as the kind of an element-wise operator.
#define CASE(i, name) layout(constant_id = i) const int name = 0;

#include "division.glsl"

// Invocations are numbered in one dimension; more workgroups than one dimension allows go into y.
layout(local_size_x_id = 100, local_size_y = 1, local_size_z = 1) in;
int invocation() {
  uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return int(group * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
}
