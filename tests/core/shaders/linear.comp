#version 450
layout(local_size_x_id = 100) in;
layout(constant_id = 0) const int SCALE = 1;
layout(binding = 0) writeonly buffer Out { float y[]; };
layout(binding = 1) readonly buffer In { float x[]; };
layout(push_constant) uniform P { int count; float bias; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < count) y[i] = float(SCALE) * x[i] + bias;
}
