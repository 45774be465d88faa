#version 450
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(binding = 0, rgba32f) writeonly uniform image3D y;
layout(binding = 1) readonly buffer In { vec4 x[]; };
void main() {
  ivec3 p = ivec3(gl_GlobalInvocationID), n = imageSize(y);
  if (all(lessThan(p, n))) imageStore(y, p, x[(p.z * n.y + p.y) * n.x + p.x]);
}
