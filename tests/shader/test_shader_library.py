"""ShaderLibrary look-ups, and the build script that makes its files."""

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from vkrt.errors import UnsupportedError
from vkrt.plan.commands import PUSHED
from vkrt.shader import ShaderLibrary, shader_library, spirv

SHADERS = Path(__file__).parents[2] / "shaders"

KERNEL = """#version 450
//! storages: texel buffer
//! dtypes: f32 f32:i32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#include "tool.glsl"
layout(local_size_x_id = 100) in;
layout(constant_id = 3) const int width_constant = 8;
layout(binding = 0) writeonly buffer result_block { float result[]; };
#ifdef STORAGE_TEXEL
layout(binding = 1) uniform textureBuffer source;
#define LOAD(i) texelFetch(source, i).x
#else
layout(binding = 1) readonly buffer source_block { float source[]; };
#define LOAD(i) source[i]
#endif
#ifdef DTYPE_OUT_i32
#define CAST int
#else
#define CAST float
#endif
void main() { result[gl_GlobalInvocationID.x] = CAST(LOAD(width_constant)) * FACTOR; }
"""


class Workshop:
    """A folder of shaders and the build script run on it."""

    def __init__(self, folder):
        self.shaders = folder / "shaders"
        self.common = self.shaders / "common"
        self.common.mkdir(parents=True)
        (self.shaders / "build.py").write_text((SHADERS / "build.py").read_text())
        (folder / "vkrt" / "shader").mkdir(parents=True)
        shutil.copy(spirv.__file__, folder / "vkrt" / "shader")
        self.out = folder / "out"
        self.out.mkdir()

    def write(self, old="", new=""):
        """Writes the shader, with a part of it replaced."""
        (self.shaders / "scale.comp").write_text(KERNEL.replace(old, new) if old else KERNEL)

    def build(self):
        return subprocess.run(
            [sys.executable, str(self.shaders / "build.py"), str(self.shaders),
             "--glslc", "glslc", "--cache", str(self.out / "cache"),
             "--bin", str(self.out / "library.bin"), "--index", str(self.out / "library.jsonl"),
             "--depfile", str(self.out / "library.d")], capture_output=True, text=True)

    def compiled(self):
        """Builds; the number of variants that were not taken from the cache."""
        done = self.build()
        assert done.returncode == 0, done.stderr
        return int(re.search(r"(\d+) compiled", done.stdout).group(1))

    def library(self):
        return ShaderLibrary(self.out / "library.jsonl", self.out / "library.bin")


@pytest.fixture
def workshop(tmp_path):
    if not shutil.which("glslc"):
        pytest.skip("no glslc")
    made = Workshop(tmp_path)
    (made.common / "tool.glsl").write_text("#define FACTOR 2\n")
    made.write()
    return made


def test_variants_and_their_interfaces(workshop):
    assert workshop.compiled() == 4
    made = workshop.library()
    assert sorted(made) == ["scale.buffer.f32", "scale.buffer.f32_i32",
                            "scale.texel.f32", "scale.texel.f32_i32"]
    shader = made.get("scale.texel.f32")
    assert made.get("scale.texel.f32") is shader
    assert [(b.binding, b.type, b.name, b.readable, b.writable) for b in shader.bindings] == [
        (0, "storage_buffer", "result", False, True),
        (1, "uniform_texel_buffer", "source", True, False)]
    assert list(shader.spec_names.items()) == [(3, "width"), (100, "local_size_x")]
    assert shader.local_size == (1, 1, 1)
    assert shader.local_size_ids == (100, None, None)
    assert shader.push_bytes == 0
    assert "SampledBuffer" in shader.capabilities
    assert "SampledBuffer" not in made.get("scale.buffer.f32").capabilities
    assert shader.spirv != made.get("scale.texel.f32_i32").spirv
    # Names are in the interface, not in what the driver gets.
    assert b"source" not in bytes(shader.spirv)


def test_variants_of_features(workshop):
    """Beside the plain one, behind its name; one of a dtype or a storage for that only."""
    file = workshop.shaders / "scale.comp"
    file.write_text(KERNEL.replace("//! dtypes", "//! features: none subgroups dot:f32 "
                                        "shuffle:texel\n//! dtypes")
                    .replace("* FACTOR", "* FACTOR * TIMES").replace("layout(local_size", """
#if defined(FEATURE_SUBGROUPS)
#extension GL_KHR_shader_subgroup_arithmetic : require
#define TIMES subgroupAdd(1)
#elif defined(FEATURE_DOT)
#define TIMES 5
#else
#define TIMES 3
#endif
layout(local_size"""))
    assert workshop.compiled() == 12
    made = workshop.library()
    plain, subgroups, dot = (made.get(f"scale.texel.f32{name}")
                             for name in ("", ".subgroups", ".dot"))
    assert "GroupNonUniformArithmetic" in subgroups.capabilities
    assert "GroupNonUniformArithmetic" not in plain.capabilities
    assert len({plain.spirv, subgroups.spirv, dot.spirv}) == 3
    assert "scale.texel.f32_i32.subgroups" in made and "scale.texel.f32_i32.dot" not in made
    assert "scale.texel.f32_i32.shuffle" in made and "scale.buffer.f32.shuffle" not in made


CHOICE = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "modes.glsl"
layout(local_size_x = 4) in;
layout(constant_id = 0) const int opcode = 0;
layout(constant_id = 1) const int row_kind = 0;
layout(binding = 0) writeonly buffer result_block { int result[]; };
void main() {
  switch (opcode) {
    case SECOND: result[0] = SECOND; break;
    case FIRST: result[0] = FIRST + TILED; break;
  }
}
"""


def test_opcodes_are_numbered_by_name(workshop):
    modes = workshop.common / "modes.glsl"
    modes.write_text("#define IS_TILED(row_kind) (row_kind == TILED)\n")
    (workshop.shaders / "choice.comp").write_text(CHOICE)
    workshop.compiled()
    assert workshop.library().opcodes == {
        "choice": {"SECOND": 1, "FIRST": 2}, "modes": {"TILED": 1}}


def test_two_opcodes_of_one_name(workshop):
    (workshop.common / "modes.glsl").write_text("// kind == TILED\n// kind == FIRST\n// kind == "
                                                "SECOND\n")
    (workshop.shaders / "choice.comp").write_text(CHOICE)
    done = workshop.build()
    assert done.returncode == 1 and "another opcode named" in done.stderr


def test_a_rebuild_compiles_what_changed(workshop):
    (workshop.shaders / "other.comp").write_text(
        "#version 450\n//! dtypes: f32\nlayout(local_size_x = 4) in;\nvoid main() {}\n")
    assert workshop.compiled() == 5
    assert workshop.compiled() == 0
    assert "other.f32" in workshop.library()
    os.utime(workshop.shaders / "scale.comp")
    assert workshop.compiled() == 0
    (workshop.common / "tool.glsl").write_text("#define FACTOR 3\n")
    assert workshop.compiled() == 4
    (workshop.shaders / "other.comp").unlink()
    assert workshop.compiled() == 0
    assert "other.f32" not in workshop.library()
    # What nothing uses any more has left the cache.
    assert len(list((workshop.out / "cache").glob("*.spv"))) == 4


def test_a_rebuild_leaves_processes_their_library(workshop):
    """They have opened it: of a file that got shorter the rest could not be read."""
    workshop.compiled()
    with open(workshop.out / "library.bin", "rb") as file:
        before = os.fstat(file.fileno()).st_size, file.read()
        (workshop.common / "tool.glsl").write_text("#define FACTOR 3\n")
        assert workshop.compiled() == 4
        file.seek(0)
        assert (os.fstat(file.fileno()).st_size, file.read()) == before
    assert (workshop.out / "library.bin").read_bytes() != before[1]


def test_files_and_folders_are_dependencies(workshop):
    workshop.compiled()
    depfile = (workshop.out / "library.d").read_text()
    for path in (workshop.shaders, workshop.shaders / "scale.comp", workshop.common / "tool.glsl"):
        assert re.search(rf"{re.escape(str(path.resolve()))}( |\n|$)", depfile)


def test_identical_modules_are_stored_once(workshop):
    workshop.write("f32 f32:i32", "f32 f16")
    workshop.compiled()
    made = workshop.library()
    assert made.get("scale.texel.f32").spirv == made.get("scale.texel.f16").spirv
    modules = {made.get(name).spirv for name in made}
    assert (workshop.out / "library.bin").stat().st_size == sum(
        len(zlib.compress(module, 9)) for module in modules)


def test_variants_that_are_left_out(workshop):
    workshop.write("//! dtypes", "//! without: texel:f32:i32\n//! dtypes")
    assert workshop.compiled() == 3
    assert set(workshop.library()) == {"scale.texel.f32", "scale.buffer.f32",
                                       "scale.buffer.f32_i32"}


def test_no_shaders_make_an_empty_library(workshop):
    (workshop.shaders / "scale.comp").unlink()
    assert workshop.compiled() == 0
    assert len(workshop.library()) == 0


@pytest.mark.parametrize("old, new, message", [
    ("texel buffer", "texel disk", "unknown storage 'disk'"),
    ("f32 f32:i32", "f32:", "'f32:' is neither a dtype nor a pair"),
    ("f32 f32:i32", "f32 f32", "named twice: scale.buffer.f32"),
    ("//! dtypes", "//! types", "unknown header line '//! types:'"),
    ("//! dtypes: f32 f32:i32", "//! storages: texel", "'//! storages:' is given twice"),
    ("//! dtypes", "//! features: none wings\n//! dtypes", "unknown feature 'wings'; one of none"),
    ("//! dtypes", "//! features: dot subgroups\n//! dtypes", "there is no plain variant, 'none'"),
    ("//! dtypes", "//! features: none dot:f16\n//! dtypes", "dtype or storage 'f16', which"),
    ("//! dtypes", "//! without: buffer:f16\n//! dtypes", "'buffer:f16' is not a storage and"),
    ("//! dtypes", "//! without: f32\n//! dtypes", "'f32' is not a storage and"),
    ("* FACTOR", "* NOTHING", "'NOTHING' : undeclared identifier"),
    ("binding = 0)", "binding = 0, set = 1)", "'result' is not in descriptor set 0"),
    ("binding = 1)", "binding = 0)", "two variables share a binding"),
])
def test_what_is_wrong_is_named(workshop, old, new, message):
    workshop.write(old, new)
    done = workshop.build()
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_installed_library_is_whole():
    found = shader_library()
    assert shader_library() is found
    stems = {path.stem for path in SHADERS.rglob("*.comp")}
    assert {name.split(".")[0] for name in found} == stems
    for name in found:
        shader = found.get(name)
        assert shader.name == name
        module = bytes(shader.spirv)
        assert spirv.strip(module) == module
        interface = spirv.interface(module)
        assert len(interface["bindings"]) == len(shader.bindings)
        assert [s["id"] for s in interface["specs"]] == [spec.id for spec in shader.specs]
        assert interface["push_bytes"] == shader.push_bytes
        assert tuple(interface["capabilities"]) == shader.capabilities
        assert all(entry.name for entry in (*shader.bindings, *shader.specs))
        assert max((s.id for s in shader.specs if s.may_be_pushed), default=0) < PUSHED


@pytest.fixture(scope="module")
def modules():
    """The different modules of the installed library, by the name of the first that has it."""
    library = shader_library()
    return {bytes(library.get(name).spirv): name for name in reversed(list(library))}


def test_texel_buffers_have_no_sampler(modules):
    """Vulkan has no sampler for them; layers of 2025 refuse modules that combine one with them."""
    sampled_image, image, buffer = 27, 25, 5
    for module, name in modules.items():
        types = {found.operands[0]: found for found in spirv.instructions(spirv.words_of(module))
                 if found.opcode in (sampled_image, image)}
        for found in types.values():
            if found.opcode == sampled_image:
                assert types[found.operands[1]].operands[2] != buffer, name


def test_every_module_is_valid(modules):
    """By the rules of SPIR-V and of Vulkan."""
    validator = shutil.which("spirv-val")
    if validator is None:
        pytest.skip("no spirv-val")
    for module, name in modules.items():
        done = subprocess.run([validator, "--target-env", "vulkan1.1", "-"], input=module,
                              capture_output=True)
        assert done.returncode == 0, f"{name}: {done.stderr.decode(errors='replace')}"


MODULE = zlib.compress(b"code")


def written(folder, names):
    """A shader library without anything in them."""
    interface = {"bindings": [], "specs": [], "push_bytes": 0, "local_size": [1, 1, 1],
                 "local_size_ids": [None] * 3, "capabilities": []}
    files, lines = {}, ""
    for file in dict.fromkeys(name.split(".")[0] for name in names):
        line = json.dumps({"variants": {name: [0, len(MODULE), 0] for name in names
                                        if name.split(".")[0] == file},
                           "interfaces": [interface]}) + "\n"
        files[file] = [len(lines), len(line)]
        lines += line
    (folder / "index").write_text(json.dumps({"opcodes": {}, "files": files}) + "\n" + lines)
    (folder / "modules").write_bytes(MODULE)
    return ShaderLibrary(folder / "index", folder / "modules")


def test_an_unknown_name_brings_the_near_ones(tmp_path):
    made = written(tmp_path, ("unary.texel.f32", "unary.texel.f16", "binary.f32"))
    assert "unary.texel.f32" in made and "unary.f32" not in made and 1 not in made
    assert list(made) == ["unary.texel.f32", "unary.texel.f16", "binary.f32"] and len(made) == 3
    with pytest.raises(UnsupportedError, match=r"'unary.disk.f32'.* unary.texel.f32, unary.texel"):
        made.get("unary.disk.f32")
    with pytest.raises(UnsupportedError, match="there are binary.f32"):
        made.get("binarry.f32")
    with pytest.raises(UnsupportedError, match="no shader 'x' in this build of vkrt$"):
        made.get("x")


def test_only_what_is_asked_for_is_read(tmp_path):
    """A shader stays there when its file is replaced or cut off; its bytes are read anew."""
    made = written(tmp_path, ("unary.f32", "binary.f32"))
    shader = made.get("unary.f32")
    assert shader.spirv == b"code" and shader.spirv is not shader.spirv
    for name in ("index", "modules"):
        (tmp_path / "new").write_bytes(b"")
        (tmp_path / "new").rename(tmp_path / name)
    assert shader.spirv == b"code" and made.get("binary.f32").spirv == b"code"
    made = written(tmp_path, ("unary.f32",))
    os.truncate(tmp_path / "modules", 3)
    cut_off = r"3 bytes at 0, expected \d+: vkrt's shader library is cut"
    with pytest.raises(OSError, match=cut_off):
        made.get("unary.f32").spirv  # noqa: B018
    (tmp_path / "modules").write_bytes(bytes(len(MODULE)))
    with pytest.raises(OSError, match="vkrt's shader library is damaged at 0"):
        made.get("unary.f32").spirv  # noqa: B018


def test_a_library_closes_its_files(tmp_path):
    made = written(tmp_path, ("unary.f32",))
    shader = made.get("unary.f32")
    before = len(os.listdir("/proc/self/fd"))
    del made
    assert shader.spirv == b"code"
    del shader
    assert len(os.listdir("/proc/self/fd")) == before - 2
