"""What Android's C library has of what libvkrt needs of one, and Java's half of the host for it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vkrt.capi.config import folder

HERE = Path(__file__).parent
HOSTS = HERE.parent.parent / "tools" / "hosts"
# What the linker and the compiler bring themselves
TOOLS = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__gmon_start__",
         "__tls_get_addr"}
# Names that glibc's headers make of those in the source, beside those that end with 64
GLIBC = {"__errno_location": "__errno", "__isoc99_fscanf": "fscanf"}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_symbols():
    """android.txt lists functions that Android 8 (API 26) has on 64-bit Arm, by the map files of
    its libraries: look a new one up there, where it says since when."""
    said = subprocess.run(["readelf", "-W", "--dyn-syms", folder() / "libvkrt.so.0"], check=True,
                          capture_output=True, text=True).stdout
    needed = {name.partition("@")[0] for name in re.findall(r" UND (\S+)", said)} - TOOLS
    plain = {GLIBC.get(name, name.removesuffix("64")) for name in needed}
    assert plain and plain - set((HERE / "android.txt").read_text().split()) == set()


def test_java_and_c_agree():
    declared = re.findall(r"external fun (\w+)", (HOSTS / "Program.kt").read_text())
    assert declared and declared == re.findall(r"Java_org_vkrt_Program_(\w+)",
                                               (HOSTS / "jni.c").read_text())
