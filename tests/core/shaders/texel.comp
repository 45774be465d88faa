#version 450
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 64) in;
layout(binding = 0) writeonly buffer Out { vec4 y[]; };
layout(binding = 1) uniform textureBuffer x;
void main() {
  int i = int(gl_GlobalInvocationID.x);
  if (i < textureSize(x)) y[i] = texelFetch(x, i) + 1.0;
}
