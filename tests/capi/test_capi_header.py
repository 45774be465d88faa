"""vkrt.h and libvkrt as compilers and linkers see them."""

import ctypes
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from c_hosts import WARNINGS, environment, flags, needs_compiler

import vkrt
from vkrt.capi import arrays, codes
from vkrt.capi.config import LIBRARY, folder
from vkrt.plan.options import LoadOptions

MAP = Path(__file__).parents[2] / "vkrt" / "capi" / "vkrt.map"
STANDARDS = [("cc", "c", standard) for standard in ("c89", "c99", "c11", "c17")]
STANDARDS += [("c++", "c++", standard) for standard in ("c++11", "c++14", "c++17", "c++20")]
HEADER = (folder() / "vkrt.h").read_text(encoding="utf-8")


@pytest.mark.parametrize("compiler, language, standard", STANDARDS, ids=lambda value: str(value))
def test_the_header_is_plain_c(compiler, language, standard, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / "host"
    source.write_text('#include "vkrt.h"\n#include "vkrt.h"\n'
                      "int main(void) { return vkrt_version() == 0; }\n")
    done = subprocess.run(
        [compiler, f"-std={standard}", "-pedantic", *WARNINGS, "-x", language, "-fsyntax-only",
         f"-I{folder()}", source], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_every_option_of_a_load_is_in_the_struct():
    struct = re.search(r"typedef struct vkrt_options \{(.*?)\}", HEADER, re.S)[1]
    names = set(re.findall(r"(\w+);", struct))
    assert {option.name for option in fields(LoadOptions)} <= names


def needs(*tools):
    return pytest.mark.skipif(not all(map(shutil.which, tools)), reason=f"no {' or '.join(tools)}")


@needs("nm")
def test_the_library_exports_what_the_list_says():
    """And nothing else; who changes the list changes the ABI."""
    found = subprocess.run(["nm", "-D", "--defined-only", folder() / LIBRARY], text=True,
                           capture_output=True, check=True).stdout
    wanted = re.findall(r"(vkrt_\w+);", MAP.read_text(encoding="utf-8"))
    assert sorted(line.split()[-1] for line in found.splitlines()) == wanted
    assert sorted(re.findall(r"(vkrt_\w+)\([^)]*\);", HEADER.replace("(*vkrt_", "("))) == wanted


@pytest.fixture
def dynamic_section():
    return subprocess.run(["readelf", "-d", folder() / LIBRARY], text=True, capture_output=True,
                          check=True).stdout


@needs("readelf")
def test_the_library_needs_no_python(dynamic_section):
    assert "python" not in "".join(re.findall(r"NEEDED.*", dynamic_section))
    abi = re.search(r"#define VKRT_ABI (\d+)", HEADER)
    assert abi and f"soname: [libvkrt.so.{abi[1]}]" in dynamic_section


# Where they are symbols of other libraries than these, a libc has them, too.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


@needs("readelf")
@pytest.mark.skipif(sys.platform != "linux", reason="other libraries")
def test_the_library_needs_nothing_but_libc(dynamic_section):
    """Without Python and without the library of C++; it takes 500 kB at most."""
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic_section))
    assert {name for name in needed if not name.startswith(("ld-", "libc."))} <= LIBRARIES
    assert (folder() / LIBRARY).stat().st_size <= 500_000


def test_numbers_are_those_of_the_header():
    """Codes and dtypes, which Python has once more."""
    numbers = {name: int(number) for name, number in re.findall(r"(VKRT_\w+) = (\d+)", HEADER)}
    assert {f"VKRT_{name.upper()}": number for name, number in arrays.NUMBERS.items()} \
        == {name: numbers[name] for name in list(numbers)
            if name.removeprefix("VKRT_").lower() in arrays.NUMBERS}
    library = ctypes.CDLL(str(folder() / LIBRARY))
    library.vkrt_code_name.restype = ctypes.c_char_p
    known = {name: number for name, number in numbers.items() if name.startswith("VKRT_ERROR")}
    assert {name: number for name, number in known.items()
            if library.vkrt_code_name(number).decode() != name} == {}
    raised = {number for _, number in codes.CODES} | {codes.INTERNAL, 1}
    assert raised == set(known.values())
    library.vkrt_version.restype = ctypes.c_char_p
    assert library.vkrt_version().decode() == vkrt.__version__


def test_every_exception_has_a_code():
    from vkrt import errors

    kinds = [kind for kind in vars(errors).values()
             if isinstance(kind, type) and kind is not errors.VkrtError]
    assert {kind for kind in kinds if codes.code_of(kind("why")) == codes.INTERNAL} == {
        errors.InternalError}
    assert codes.code_of(ZeroDivisionError()) == codes.INTERNAL


def test_a_bug_says_where_it_is():
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    assert codes.text_of(caught.value).startswith("ZeroDivisionError: division by zero (")
    assert "test_capi_header.py:" in codes.text_of(caught.value)


def test_programs_share_a_device_that_a_host_describes_alike():
    """It is adopted once, and closed behind the last of them."""
    from vkrt.capi import sharing

    class Device:
        closed = 0

        def close(self):
            self.closed += 1

    made = []

    def adopt():
        made.append(Device())
        return made[-1]

    first, second, other = (sharing.take(key, adopt) for key in ("a", "a", "b"))
    assert first is second and other is not first and len(made) == 2
    sharing.keep(-1, first)
    sharing.give_back(second)
    assert not made[0].closed
    sharing.closed(-1)
    sharing.closed(-1)
    assert made[0].closed == 1
    sharing.give_back(other)
    assert sharing.take("a", adopt) is not first and len(made) == 3
    sharing.give_back(sharing._adopted["a"])
    assert not sharing._adopted and not sharing._of_programs


@needs_compiler
@needs("pkg-config")
def test_pkg_config_says_the_same():
    said = subprocess.run(["pkg-config", "--cflags", "--libs", "vkrt"], text=True,
                          env=environment(PKG_CONFIG_PATH=str(folder())), capture_output=True,
                          check=True).stdout
    assert said.split() == flags()


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(vkrt 0.1 REQUIRED)
add_executable(by_package host.c)
target_link_libraries(by_package vkrt::vkrt)
find_package(PkgConfig REQUIRED)
pkg_check_modules(VKRT REQUIRED IMPORTED_TARGET vkrt)
add_executable(by_pkg_config host.c)
target_link_libraries(by_pkg_config PkgConfig::VKRT)
"""


@needs_compiler
@needs("cmake", "pkg-config")
def test_cmake_links_a_host_by_package_and_by_pkg_config(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "host.c").write_text("""
        #include <stdio.h>
        #include "vkrt.h"
        int main(void) { return puts(vkrt_version()) < 0; }
        """)
    around = environment(PKG_CONFIG_PATH=str(folder()), vkrt_DIR=str(folder()))
    for command in (["cmake", "-S", tmp_path, "-B", tmp_path / "made"],
                    ["cmake", "--build", tmp_path / "made"]):
        done = subprocess.run(command, env=around, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("by_package", "by_pkg_config"):
        said = subprocess.run([tmp_path / "made" / name], env=around, capture_output=True,
                              text=True, check=True).stdout
        assert said.strip() == vkrt.__version__
