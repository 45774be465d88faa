#version 450
// The least, the greatest and the mean of a picture's values, one workgroup for all of them.
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Picture { float value[]; } picture;
layout(binding = 1) writeonly buffer Result { float least, most, mean; } result;
layout(push_constant) uniform Push { uint size, frame; } push;
shared vec3 parts[64];

void main() {
    uint own = gl_LocalInvocationID.x;
    vec3 part = vec3(1e30, -1e30, 0.0);
    for (uint i = own; i < push.size; i += 64u) {
        float x = picture.value[i];
        part = vec3(min(part.x, x), max(part.y, x), part.z + x);
    }
    parts[own] = part;
    barrier();
    if (own == 0u) {
        for (uint i = 1u; i < 64u; i++)
            part = vec3(min(part.x, parts[i].x), max(part.y, parts[i].y), part.z + parts[i].z);
        result.least = part.x;
        result.most = part.y;
        result.mean = part.z / float(push.size);
    }
}
