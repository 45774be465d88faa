"""Kinds of files that are mistaken for a program: recognised by their first bytes, for messages."""

from __future__ import annotations

from collections.abc import Callable

# So many bytes of a file show what it is.
HEAD_BYTES = 512

EXPORT = ("vkrt runs programs of ExecuTorch (.pte); export the PyTorch module of this network for "
          "Vulkan (README.md, \"How to export a program\")")
INPUT = "that is an input of a run (--input), not a program"


def _begins(*starts: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(starts)


def _zip_with(*parts: bytes) -> Callable[[bytes], bool]:
    """Whether it is a zip archive with one of these in the name of its first member."""
    return lambda head: head.startswith(b"PK\x03\x04") and any(
        part in head[30:30 + int.from_bytes(head[26:28], "little")] for part in parts)


def _protobuf_with(is_second: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """Whether it is a protobuf message that begins with a small version, followed by bytes that
    pass `is_second`. ONNX and Core ML begin with a version; the second field tells them apart."""
    return lambda head: len(head) > 4 and head[0] == 0x08 and head[1] < 0x80 and is_second(head[2:])


# (what the file is, whether a file that begins so is one, what to do then)
KINDS: tuple[tuple[str, Callable[[bytes], bool], str], ...] = (
    ("a pointer of Git LFS, not the file that it stands for", _begins(b"version https://git-lfs"),
     "get the file by `git lfs pull` in its repository"),
    ("a web page (HTML)", lambda head: head.lstrip()[:5].lower() in (b"<!doc", b"<html"),
     "download the file itself, not the page that shows it or asks for a login"),
    ("a program (.pte)", lambda head: head[4:8] == b"ET12", "name its file of constants (.ptd)"),
    ("a file of constants (.ptd)", lambda head: head[4:8] == b"FT01",
     "name its program, and this file as its data (data_path=, --data-path)"),
    ("a file of packed weights (.vkpack)", _begins(b"vkrtpack"),
     "these are no longer used; `vkrt compile` makes a file that loads with its weights packed"),
    ("a compiled program (.vkx)", _begins(b"vkrtexe\0"),
     "load and run it like a program; what is made of a program is made of its .pte file"),
    ("a GGUF model", _begins(b"GGUF"), EXPORT),
    ("a TensorFlow Lite model", lambda head: head[4:8] == b"TFL3", EXPORT),
    ("a file of safetensors", lambda head: head[8:10] == b'{"',
     "it has weights and no network; " + EXPORT),
    ("an array of numpy", lambda head: _begins(b"\x93NUMPY")(head) or _zip_with(b".npy")(head),
     INPUT),
    ("a picture", _begins(b"\xff\xd8\xff", b"\x89PNG\r\n"), INPUT),
    ("a sound", lambda head: head[8:12] == b"WAVE", INPUT),
    ("a PyTorch file", _zip_with(b"/data", b"/version", b"archive_format"), EXPORT),
    ("an object that Python saved, perhaps an old PyTorch file",
     _begins(*(b"\x80" + bytes([protocol]) for protocol in range(2, 6))), EXPORT),
    ("a zip archive", _begins(b"PK\x03\x04"), "unpack it, and name the .pte file that it has"),
    ("a gzip archive", _begins(b"\x1f\x8b"), "unpack it, and name the .pte file that it has"),
    # ONNX has the producer's name, the graph or the operator sets next, Core ML a description
    ("an ONNX model", _protobuf_with(lambda rest: rest[0] in b"\x3a\x42" or (
        rest[0] == 0x12 and rest[2:3].isalpha())), EXPORT),
    ("a Core ML model", _protobuf_with(lambda rest: rest[0] == 0x12), EXPORT),
)


def mistaken(name: str, head: bytes, identifier: bytes = b"ET12") -> str:
    """The message for a file that was mistaken for a program; "" where its bytes say nothing.

    Args:
        head: its first `HEAD_BYTES` bytes, or all.
        identifier: of the kind it was taken for; a file that has it is damaged.
    """
    if not head:
        return f"{name} is empty"
    if head[4:8] == identifier:
        return ""
    return next((f"{name} is {what}: {advice}" for what, is_one, advice in KINDS if is_one(head)),
                "")
