#version 450
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(binding = 0) writeonly buffer Out { vec4 y[]; };
layout(binding = 1) uniform sampler3D x;
void main() {
  ivec3 p = ivec3(gl_GlobalInvocationID), n = textureSize(x, 0);
  if (all(lessThan(p, n))) y[(p.z * n.y + p.y) * n.x + p.x] = texelFetch(x, p, 0) * 2.0;
}
