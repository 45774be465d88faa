#version 450
// Fills a picture with numbers from 0 to 1 that depend on the frame.
layout(local_size_x = 64) in;
layout(binding = 0) writeonly buffer Picture { float value[]; } picture;
layout(push_constant) uniform Push { uint size, frame; } push;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < push.size)
        picture.value[i] = float((i * 7919u + push.frame * 104729u) % 256u) / 255.0;
}
