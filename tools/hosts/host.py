"""Runs a program through vkrt.h by cffi, as any language does that can call C.

    host.py program.pte

Prints the first numbers of every output at inputs of zeros. The declarations are read from vkrt.h.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cffi

from vkrt.capi.config import LIBRARY, folder


def declarations(header: Path) -> str:
    """What is in vkrt.h, without the preprocessor's lines and what only they understand."""
    text = header.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'^#.*$|^extern "C" \{$|^\}$', "", text, flags=re.MULTILINE)
    return text.replace("VKRT_API ", "")


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: host.py program.pte", file=sys.stderr)
        return 2
    ffi = cffi.FFI()
    ffi.cdef(declarations(folder() / "vkrt.h"))
    vkrt = ffi.dlopen(str(folder() / LIBRARY))

    def check(code: int) -> None:
        if code != vkrt.VKRT_OK:
            raise SystemExit(f"{ffi.string(vkrt.vkrt_code_name(code)).decode()}: "
                             f"{ffi.string(vkrt.vkrt_last_error_text()).decode()}")

    def struct(kind: str) -> object:
        made = ffi.new(f"{kind} *")
        made.size = ffi.sizeof(kind)
        return made

    handle = ffi.new("vkrt_program *")
    check(vkrt.vkrt_load(sys.argv[1].encode(), ffi.NULL, handle))
    program = handle[0]
    method = struct("vkrt_method_info")
    check(vkrt.vkrt_method_get(program, 0, method))
    memories = []
    tensors = {}
    for what, count, get in (("input", method.input_count, vkrt.vkrt_input_get),
                             ("output", method.output_count, vkrt.vkrt_output_get)):
        tensors[what] = ffi.new("vkrt_tensor[]", max(count, 1))
        for index in range(count):
            info = struct("vkrt_tensor_info")
            check(get(program, method.name, index, info))
            memories.append(ffi.new("char[]", max(info.nbytes, 1)))
            tensor = tensors[what][index]
            tensor.data, tensor.nbytes, tensor.dtype = memories[-1], info.nbytes, info.dtype
            tensor.rank, tensor.sizes = info.rank, info.sizes
    check(vkrt.vkrt_run(program, method.name, ffi.NULL, tensors["input"], method.input_count,
                        tensors["output"], method.output_count))
    for index in range(method.output_count):
        tensor = tensors["output"][index]
        numbers = ffi.cast("float *", tensor.data)[0:min(tensor.nbytes // 4, 3)]
        print(f"output {index}: {list(tensor.sizes[0:tensor.rank])}",
              *(f"{number:.6g}" for number in numbers))
    check(vkrt.vkrt_close(program))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
