"""The parser of SPIR-V against modules written word by word and modules that glslc makes."""

import shutil
import struct
import subprocess

import pytest

from vkrt.shader import spirv

needs_glslc = pytest.mark.skipif(not shutil.which("glslc"), reason="no glslc")


def text(string):
    raw = string.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 4)
    return struct.unpack(f"<{len(raw) // 4}I", raw)


def module(*instructions, version=0x10300):
    """A module of (opcode, operands ...) tuples."""
    words = [spirv.MAGIC, version, 0, 1000, 0]
    for opcode, *operands in instructions:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


MINIMAL = (
    (17, 1),                        # OpCapability Shader
    (15, 5, 1, *text("main")),      # OpEntryPoint GLCompute %1 "main"
    (16, 1, 17, 8, 4, 2),           # OpExecutionMode %1 LocalSize 8 4 2
)


def test_minimal_module():
    assert spirv.interface(module(*MINIMAL)) == {
        "bindings": [], "specs": [], "push_bytes": 0, "local_size": [8, 4, 2],
        "local_size_ids": [None, None, None], "capabilities": ["Shader"],
    }


def test_an_unknown_capability_keeps_its_number():
    found = spirv.interface(module((17, 99999), *MINIMAL))
    assert found["capabilities"] == ["Capability99999", "Shader"]


def test_storage_buffer_before_version_1_3():
    found = spirv.interface(module(
        *MINIMAL,
        (71, 10, 3), (72, 10, 0, 35, 0),                # %10 BufferBlock, member 0 Offset 0
        (71, 12, 34, 0), (71, 12, 33, 5),               # %12 DescriptorSet 0, Binding 5
        (22, 8, 32), (29, 9, 8), (30, 10, 9),           # float, float[], struct
        (32, 11, 2, 10), (59, 11, 12, 2),               # pointer, variable, both Uniform
    ))
    assert [(b["binding"], b["type"]) for b in found["bindings"]] == [(5, "storage_buffer")]


@pytest.mark.parametrize("data, message", [
    (b"", "0 bytes"),
    (b"\0" * 20, "magic number 0x00000000"),
    (module()[:-1], "19 bytes"),
    (module((17, 1)) + struct.pack("<I", 0), "claims 0 words"),
    (module() + struct.pack("<I", 9 << 16 | 17), "claims 9 words of the 1 left"),
    (module((17,)), "too few operands"),
    (module(), "0 compute entry points"),
    (module(*MINIMAL[:2]), "no local size"),
    (module(*MINIMAL, (59, 20, 21, 12)), "no binding"),
    (module(*MINIMAL, (71, 21, 33, 0), (59, 20, 21, 12)), "id 20"),
])
def test_what_is_not_a_compute_module_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        spirv.interface(data)


def compile_glsl(tmp_path, source, *flags):
    path = tmp_path / "shader.comp"
    path.write_text(source)
    return subprocess.run(["glslc", "--target-env=vulkan1.1", *flags, str(path), "-o", "-"],
                          check=True, capture_output=True).stdout


EVERYTHING = """
#version 450
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x_id = 7, local_size_y = 3, local_size_z_id = 9) in;
layout(constant_id = 0) const int kind = -2;
layout(constant_id = 4) const uint width = 6;
layout(constant_id = 5) const float scale = 1.5;
layout(constant_id = 6) const bool wide = true;
layout(binding = 0) writeonly buffer result_block { vec4 result[]; };
layout(binding = 1) readonly buffer Source { float values[]; } source;
layout(binding = 2) buffer both_block { uint first; uint rest[]; };
layout(binding = 3) uniform samplerBuffer texels;
layout(binding = 4) uniform isampler3D volume;
layout(binding = 5, rgba8ui) uniform writeonly uimage3D image;
layout(binding = 6, r32f) uniform readonly imageBuffer stored;
layout(binding = 7) uniform Sizes { mat4 matrix; };
layout(binding = 8) uniform sampler2D pictures[3];
layout(binding = 9) uniform utextureBuffer plain;
layout(binding = 10) uniform texture3D unsampled;
layout(push_constant) uniform Push { ivec3 sizes; float more[3]; vec2 last; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  result[i] = source.values[i] * scale + texelFetch(texels, int(i)) + vec4(rest[i] + first)
    + texelFetch(volume, ivec3(i), 0) + imageLoad(stored, int(i)) + matrix[0] + last.x + more[1]
    + texelFetch(pictures[1], ivec2(i), 0) + texelFetch(plain, int(i))
    + texelFetch(unsampled, ivec3(i), 0) + float(kind) + float(width) + float(wide);
  rest[i] = sizes.x;
  imageStore(image, ivec3(i), uvec4(1));
}
"""


@needs_glslc
@pytest.mark.parametrize("flags", [("-g",), ("-g", "-O")])
def test_every_kind_of_declaration(tmp_path, flags):
    found = spirv.interface(compile_glsl(tmp_path, EVERYTHING, *flags))
    assert [(b["binding"], b["name"], b["type"], b["component"], b["readable"], b["writable"],
             b["count"]) for b in found["bindings"]] == [
        (0, "result", "storage_buffer", "struct", False, True, 1),
        (1, "source", "storage_buffer", "struct", True, False, 1),
        (2, "both_block", "storage_buffer", "struct", True, True, 1),
        (3, "texels", "uniform_texel_buffer", "float", True, False, 1),
        (4, "volume", "combined_image_sampler", "int", True, False, 1),
        (5, "image", "storage_image", "uint", False, True, 1),
        (6, "stored", "storage_texel_buffer", "float", True, False, 1),
        (7, "matrix", "uniform_buffer", "struct", True, False, 1),
        (8, "pictures", "combined_image_sampler", "float", True, False, 3),
        (9, "plain", "uniform_texel_buffer", "uint", True, False, 1),
        (10, "unsampled", "sampled_image", "float", True, False, 1),
    ]
    specs = {s["id"]: (s["name"], s["type"], s["default"]) for s in found["specs"]}
    assert specs[0] == ("kind", "int", 2**32 - 2)
    assert specs[4] == ("width", "uint", 6)
    assert specs[5] == ("scale", "float", struct.unpack("<I", struct.pack("<f", 1.5))[0])
    assert specs[6] == ("wide", "bool", 1)
    assert set(specs) == {0, 4, 5, 6, 7, 9}
    assert found["local_size"] == [1, 3, 1]
    assert found["local_size_ids"] == [7, None, 9]
    # ivec3 at 0, float[3] with a stride of 4 at 12, vec2 at 24 (std430).
    assert found["push_bytes"] == 32
    assert {"Shader", "SampledBuffer", "ImageBuffer"} <= set(found["capabilities"])


@needs_glslc
def test_stripping_removes_the_names_and_keeps_the_rest(tmp_path):
    named = compile_glsl(tmp_path, EVERYTHING, "-g", "-O")
    stripped = spirv.strip(named)
    assert b"texels" in named and b"texels" not in stripped
    # The same code as without -g, if under other ids.
    plain = compile_glsl(tmp_path, EVERYTHING, "-O")
    assert ([i.opcode for i in spirv.instructions(spirv.words_of(stripped))]
            == [i.opcode for i in spirv.instructions(spirv.words_of(plain))])

    def nameless(interface):
        for entry in interface["bindings"] + interface["specs"]:
            entry["name"] = ""
        return interface

    assert spirv.interface(stripped) == nameless(spirv.interface(named))
