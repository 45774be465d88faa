#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { float y[]; };
void main() { y[0] = float(float16_t(y[0]) * float16_t(3.0)); }
