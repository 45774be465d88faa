#!/usr/bin/env python3
"""Compiles every variant of every shader and writes the library that vkrt/shader reads.

    build.py SHADERS --glslc GLSLC --cache DIR --bin library.bin --index library.jsonl
        --depfile FILE

SHADERS/FAMILY/*.comp hold one kernel each; header lines say which variants there are:

    //! storages: texel buffer texture3d    (none: one variant, STORAGE_BUFFER, without the storage
                                             in its name)
    //! dtypes: f32 f16 f32:i32             (a:b reads a and writes b; none: no dtype in the name)
    //! features: none subgroups float16:f16   (what a variant may use of a device beyond every
                                             device's least; none: such a line is left out, or the
                                             plain variant; `float16:f16`, `shuffle:texel`:
                                             for that dtype or that storage only;
                                             a single one without none: all variants need it)
    //! without: texture3d:i32:i8           (a storage and a dtype that nothing asks for together)
    //! target: vulkan1.2                   (none: vulkan1.1)

`unary.comp` becomes `unary.texel.f32` and so on, `a:b` is written a_b in names. A variant is
compiled with STORAGE_<STORAGE>=1, DTYPE=<a>, DTYPE_<a>=1 and, of a pair, DTYPE_OUT=<b>,
DTYPE_OUT_<b>=1; one of a feature has its name behind all that (`unary.texel.f32.subgroups`) and
FEATURE_SUBGROUPS=1. SHADERS/common is the include folder, beside the file's own.

What a file tells apart by name (`case ABS:`, `opcode == ABS`, `mask_kind == ADDED`) is numbered
here from 1 on, as first mentioned: 0 is none of them. The library has the numbers for the host, by
file and name.

Modules are compiled with -g, their interface is read from the words with the names still in them,
then the debug information is stripped: the code is the same as without -g, and bindings and
specialization constants keep the names that people gave them.

Results are kept in the cache under a hash of all that went into them, so that an edit of one
shader costs the compilation of that shader.
"""

import argparse
import concurrent.futures
import hashlib
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

STORAGES = {"texel": "STORAGE_TEXEL", "buffer": "STORAGE_BUFFER",
            "texture3d": "STORAGE_TEXTURE3D"}
# What kernels may use where a device has it (`Target.features`); vkrt/device/rows.py says which of
# the device's features each takes.
FEATURES = ("subgroups", "float16", "dot", "storage8", "storage16", "shuffle")
PLAIN = "none"
HEADER = re.compile(r"^//!\s*(\w+)\s*:\s*(.*?)\s*$", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
OPCODE = re.compile(r"(?:\bcase\s+|(?:opcode|kind)\s*==\s*)([A-Z][A-Z0-9_]*)\b")
# Names that params.glsl gives to the constant behind a parameter.
CONSTANT_SUFFIX = "_constant"


class BuildError(Exception):
    """What is wrong with the shaders, in words for the person who wrote them."""


def load_spirv(path: Path):
    """vkrt/shader/spirv.py alone: the package around it cannot be imported before it is built."""
    spec = importlib.util.spec_from_file_location("spirv", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Variant:
    """One compilation of one file."""

    def __init__(self, path: Path, storage: str | None, dtype: str | None, feature: str,
                 target: str, definitions: list[str]):
        self.path = path
        parts = [path.stem, *([storage] if storage else [])]
        self.flags = [f"--target-env={target}", f"-D{STORAGES[storage or 'buffer']}=1",
                      *definitions]
        if dtype:
            first, _, second = dtype.partition(":")
            parts.append(dtype.replace(":", "_"))
            self.flags += [f"-DDTYPE={first}", f"-DDTYPE_{first}=1"]
            if second:
                self.flags += [f"-DDTYPE_OUT={second}", f"-DDTYPE_OUT_{second}=1"]
        if feature != PLAIN:
            parts.append(feature)
            self.flags.append(f"-DFEATURE_{feature.upper()}=1")
        self.name = ".".join(parts)


class Sources:
    """Shader texts and what each includes, read once."""

    def __init__(self, include_dir: Path):
        self.include_dir = include_dir
        self.texts: dict[Path, str] = {}

    def text(self, path: Path) -> str:
        if path not in self.texts:
            self.texts[path] = path.read_text()
        return self.texts[path]

    def closure(self, path: Path) -> list[Path]:
        """The file and all it includes, in order of first mention."""
        found = [path]
        for file in found:
            for name in INCLUDE.findall(self.text(file)):
                for folder in (file.parent, self.include_dir):
                    included = folder / name
                    if included.is_file() and included not in found:
                        found.append(included)
                        break
        return found


    def opcodes(self, path: Path) -> dict[str, int]:
        """The opcodes that a file names, with their numbers."""
        names = dict.fromkeys(OPCODE.findall(self.text(path)))
        return {name: number for number, name in enumerate(names, 1)}

    def definitions(self, path: Path) -> list[str]:
        """The opcodes of a shader and of all it includes, as options of the compiler."""
        numbers: dict[str, int] = {}
        for file in self.closure(path):
            for name, number in self.opcodes(file).items():
                if numbers.setdefault(name, number) != number:
                    raise BuildError(f"{path}: {file.name} has another opcode named {name}")
        return [f"-D{name}={number}" for name, number in numbers.items()]


def variants_of(path: Path, sources: Sources) -> list[Variant]:
    header = {}
    for key, value in HEADER.findall(sources.text(path)):
        if key not in ("storages", "dtypes", "features", "without", "target"):
            raise BuildError(f"{path}: unknown header line '//! {key}:'")
        if key in header or not value:
            raise BuildError(f"{path}: '//! {key}:' is {'empty' if not value else 'given twice'}")
        header[key] = value.split()
    for storage in header.get("storages", []):
        if storage not in STORAGES:
            raise BuildError(f"{path}: unknown storage '{storage}'; one of {', '.join(STORAGES)}")
    for dtype in header.get("dtypes", []):
        if not re.fullmatch(r"\w+(:\w+)?", dtype):
            raise BuildError(f"{path}: '{dtype}' is neither a dtype nor a pair a:b")
    features = [word.partition(":") for word in header.get("features", [PLAIN])]
    for feature, _, only in features:
        if feature not in (PLAIN, *FEATURES):
            raise BuildError(f"{path}: unknown feature '{feature}'; one of "
                             f"{', '.join((PLAIN, *FEATURES))}")
        if only and only not in (*header.get("dtypes", []), *header.get("storages", [])):
            raise BuildError(f"{path}: feature '{feature}' is for dtype or storage '{only}', which "
                             "the file does not have")
    if (PLAIN, "", "") not in features and len(features) > 1:
        raise BuildError(f"{path}: there is no plain variant, '{PLAIN}' among its features")
    without = [tuple(word.split(":", 1)) for word in header.get("without", [])]
    for pair in without:
        if pair not in itertools.product(header.get("storages", []), header.get("dtypes", [])):
            raise BuildError(f"{path}: '{':'.join(pair)}' is not a storage and a dtype of the file")
    (target,) = header.get("target", ["vulkan1.1"])
    definitions = sources.definitions(path)
    return [Variant(path, storage, dtype, feature, target, definitions)
            for storage in header.get("storages", [None])
            for dtype in header.get("dtypes", [None])
            for feature, _, only in features
            if only in ("", dtype, storage) and (storage, dtype) not in without]


class Compiler:
    """glslc with a cache of its results by content."""

    def __init__(self, glslc: str, sources: Sources, cache: Path, spirv, spirv_path: Path):
        self.glslc, self.sources, self.cache, self.spirv = glslc, sources, cache, spirv
        version = subprocess.run([glslc, "--version"], capture_output=True, check=True).stdout
        tools = [version, spirv_path.read_bytes(), Path(__file__).read_bytes()]
        self.salt = hashlib.sha256(b"\0".join(tools)).digest()
        self.compiled = 0

    def __call__(self, variant: Variant) -> tuple[str, bytes, str] | BuildError:
        """Cache key, stripped module and interface (as JSON) of a variant, or what went wrong."""
        hashed = hashlib.sha256(self.salt)
        hashed.update("\0".join(variant.flags).encode())
        for file in self.sources.closure(variant.path):
            hashed.update(f"\0{file.name}\0{self.sources.text(file)}".encode())
        key = hashed.hexdigest()[:32]
        module_file, interface_file = self.cache / f"{key}.spv", self.cache / f"{key}.json"
        try:
            return key, module_file.read_bytes(), interface_file.read_text()
        except FileNotFoundError:
            pass
        self.compiled += 1
        command = [self.glslc, "-g", "-O", "-fshader-stage=compute", *variant.flags,
                   "-I", str(self.sources.include_dir), str(variant.path), "-o", "-"]
        done = subprocess.run(command, capture_output=True)
        messages = done.stderr.decode(errors="replace")
        if done.returncode:
            return BuildError(f"{variant.name}: {' '.join(command)}\n{messages}")
        if messages:
            print(f"{variant.name}:\n{messages}", file=sys.stderr, end="")
        try:
            described = json.dumps(self.describe(done.stdout), separators=(",", ":"))
        except ValueError as error:
            return BuildError(f"{variant.name}: {error}")
        module = self.spirv.strip(done.stdout)
        # The interface last: where it exists, the module does too.
        for file, content in ((module_file, module), (interface_file, described.encode())):
            partial = file.with_suffix(f"{file.suffix}.{os.getpid()}")
            partial.write_bytes(content)
            partial.replace(file)
        return key, module, described

    def describe(self, module: bytes) -> dict:
        described = self.spirv.interface(module)
        for binding in described["bindings"]:
            if binding.pop("set") != 0:
                raise ValueError(f"'{binding['name']}' is not in descriptor set 0, the only one "
                                 f"that vkrt binds")
            if binding.pop("count") != 1:
                raise ValueError(f"'{binding['name']}' is an array of descriptors")
        numbers = [binding["binding"] for binding in described["bindings"]]
        if len(set(numbers)) != len(numbers):
            raise ValueError(f"two variables share a binding: {numbers}")
        for spec in described["specs"]:
            spec["name"] = spec["name"].removesuffix(CONSTANT_SUFFIX)
            # local_size_x_id declares a constant without a name.
            if spec["id"] in described["local_size_ids"]:
                axis = "xyz"[described["local_size_ids"].index(spec["id"])]
                spec["name"] = spec["name"] or f"local_size_{axis}"
        return described


def write_library(results: dict[str, tuple[str, bytes, str]], opcodes: dict[str, dict[str, int]],
                  bin_file: Path, index_file: Path):
    """Modules are stored once however many variants have them, interfaces once in each file.

    Each module is compressed by itself, as a load reads a dozen of them. The index is lines of
    JSON, to be read one by one: the first has the opcodes, and where the line of each file of
    shaders begins behind it, and its bytes. Such a line has the file's interfaces, and of its
    variants the offset and bytes of the compressed module and the number of the interface.
    """
    blob = bytearray()
    # Offset and bytes of each module
    stored: dict[bytes, list[int]] = {}
    variants: dict[str, dict[str, list[int]]] = {}
    interfaces: dict[str, dict[str, int]] = {}
    for name, (_, module, described) in results.items():
        if module not in stored:
            packed = zlib.compress(module, 9)
            stored[module] = [len(blob), len(packed)]
            blob += packed
        file = name.partition(".")[0]
        known = interfaces.setdefault(file, {})
        number = known.setdefault(described, len(known))
        variants.setdefault(file, {})[name] = [*stored[module], number]
    # New files: processes that have opened the former ones keep those.
    for former in (bin_file, index_file):
        former.unlink(missing_ok=True)
    bin_file.write_bytes(blob)
    files, lines = {}, bytearray()
    for file, found in variants.items():
        line = json_line({"variants": found,
                          "interfaces": [json.loads(text) for text in interfaces[file]]})
        files[file] = [len(lines), len(line)]
        lines += line
    index_file.write_bytes(json_line({"opcodes": opcodes, "files": files}) + lines)
    return len(stored), len(blob)


def json_line(content) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def write_depfile(depfile: Path, target: Path, dependencies: list[Path]):
    def escaped(path: Path) -> str:
        return str(path).replace("$", "$$").replace("#", r"\#").replace(" ", r"\ ")
    depfile.write_text(f"{escaped(target)}: " + " \\\n  ".join(map(escaped, dependencies)) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shaders", type=Path)
    for name in ("glslc", "cache", "bin", "index", "depfile"):
        parser.add_argument(f"--{name}", required=True, type=str if name == "glslc" else Path)
    options = parser.parse_args()

    shaders = options.shaders.resolve()
    common = shaders / "common"
    spirv_path = shaders.parent / "vkrt" / "shader" / "spirv.py"
    sources = Sources(common)
    kernels = sorted(shaders.rglob("*.comp"), key=lambda path: path.name)
    included = sorted(shaders.rglob("*.glsl"))
    try:
        variants = [variant for path in kernels for variant in variants_of(path, sources)]
        doubles = {v.name for v in variants if [w.name for w in variants].count(v.name) > 1}
        if doubles:
            raise BuildError(f"named twice: {', '.join(sorted(doubles))}")
    except BuildError as error:
        print(f"shaders: {error}", file=sys.stderr)
        return 1

    options.cache.mkdir(parents=True, exist_ok=True)
    compiler = Compiler(options.glslc, sources, options.cache, load_spirv(spirv_path), spirv_path)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(compiler, variants))
    failures = {variant: answer for variant, answer in zip(variants, answers, strict=True)
                if isinstance(answer, BuildError)}
    if failures:
        # One a file: its variants mostly fail for the same reason.
        for failure in {variant.path: failures[variant] for variant in reversed(failures)}.values():
            print(f"shaders: {failure}", file=sys.stderr)
        print(f"shaders: {len(failures)} of {len(variants)} variants do not compile: "
              f"{' '.join(variant.name for variant in failures)}", file=sys.stderr)
        return 1

    results = dict(zip((variant.name for variant in variants), answers, strict=True))
    opcodes = {path.stem: numbers for path in (*kernels, *included)
             if (numbers := sources.opcodes(path))}
    modules, nbytes = write_library(results, opcodes, options.bin, options.index)
    used = {f"{key}{suffix}" for key, _, _ in results.values() for suffix in (".spv", ".json")}
    for file in options.cache.iterdir():
        if file.name not in used:
            file.unlink(missing_ok=True)
    # The folders are dependencies too: their time changes when a file appears or goes.
    write_depfile(options.depfile, options.bin,
                  [shaders, *sorted(path for path in shaders.iterdir() if path.is_dir()),
                   Path(__file__).resolve(), spirv_path, *kernels, *included])
    print(f"shaders: {len(variants)} variants, {compiler.compiled} compiled, {modules} modules of "
          f"{nbytes} bytes together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
