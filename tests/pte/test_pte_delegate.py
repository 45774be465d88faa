"""Reading of the Vulkan delegate's blob."""

import struct

import pte_writer as w
import pytest
from pte_samples import KEY, sample_blob, sample_program

from vkrt import pte
from vkrt.errors import FormatError

OUTSIDE = (1 << 64) - 1


def read(root, tail=b"", named=None, external=None, bytes_size=0):
    data = w.blob(root, tail, bytes_size)
    return pte.read_delegate(data, pte.Span(0, len(data)), named or {}, external)


def test_sample():
    data = sample_program()
    program = pte.read_program(data)
    graph = pte.read_delegate(data, program.plans[0].delegates[0].span, program.named_data)
    assert graph.version == "0" and graph.input_ids == (0,) and graph.output_ids == (2,)
    assert graph.chain == (pte.OperatorCall(5, "aten.linear.default", (0, 1, 3, 2)),)
    assert graph.values == (
        pte.VkTensor("float32", (2, 4), -1, 0, 1, 2, "float32"),
        pte.VkTensor("float32", (3, 4), 0, -1, 255, 255, "float32"),
        pte.VkTensor("float32", (2, 3), -1, 1, 255, 255, "float64"),
        None, -7, 0.5, True, pte.IntList((1, -2)), pte.DoubleList((1.5,)),
        pte.BoolList((False, True)), pte.ValueList((0, 3, 11)), pte.SymInt(0), "none")
    assert graph.constants == (pte.Constant(KEY, program.named_data[KEY]),)
    assert graph.values[1].nbytes == 48 and graph.values[1].numel == 12


def test_absent_ids_are_zero():
    graph = read(w.graph([w.union(5, w.Table({0: w.i8(5)}))], constants=[w.vk_bytes(0, 4)]),
                 tail=bytes(16))
    assert graph.values[0].constant == 0 and graph.values[0].mem_obj == 0
    assert graph.values[0].sizes == ()


@pytest.mark.parametrize("bytes_size", [0, 40])
def test_constants_in_blob(bytes_size):
    """Their length comes from the shape, whatever the record says."""
    root = w.graph([w.vk_tensor([2, 3], datatype=4, constant=0), w.vk_tensor([0], constant=1)],
                   constants=[w.vk_bytes(16, 0), w.vk_bytes(28, 99), w.vk_bytes(0, 4)])
    data = w.blob(root, bytes(40), bytes_size)
    graph = pte.read_delegate(b"12345678" + data + b"tail", pte.Span(8, len(data)), {})
    start = 8 + len(data) - 40
    assert graph.constants == tuple(pte.Constant(None, pte.Span(start + offset, nbytes))
                                    for offset, nbytes in ((16, 12), (28, 0), (0, 4)))


def test_missing_and_external_data():
    root = w.graph([w.vk_tensor([2], constant=0)], constants=[w.vk_bytes(OUTSIDE, 8, KEY)])
    with pytest.raises(FormatError, match=f"{KEY}.*ptd.*data_path"):
        read(root)
    with pytest.raises(FormatError, match=f"{KEY}.*ptd.*data_path"):
        read(root, external=pte.External())
    with pytest.raises(FormatError, match=rf"{KEY}.*a\.ptd, b\.ptd"):
        read(root, external=pte.External(("a.ptd", "b.ptd")))
    graph = read(root, external=pte.External(("a.ptd", "b.ptd"),
                                         {KEY: pte.ExternalData(pte.Span(1 << 40, 8), 2)}))
    assert graph.constants == (pte.Constant(KEY, pte.Span(1 << 40, 8), 2),)
    with pytest.raises(FormatError, match="named data of this file"):
        read(root, named={KEY: pte.Span(1 << 40, 8)})
    with pytest.raises(FormatError, match=r"VkBytes\.length"):
        read(root, named={KEY: pte.Span(0, 7)})


@pytest.mark.parametrize("message, root", [
    ("value_type", w.graph([w.union(0, w.Table())])),
    ("value_type", w.graph([w.union(12, w.Table())])),
    ("VkValue.value at", w.graph([w.Table({0: w.u8(5)})])),
    ("VkTensor.datatype", w.graph([w.vk_tensor([1], datatype=127)])),
    ("staging_datatype", w.graph([w.vk_tensor([1], _6=w.i8(8))])),
    ("constant_id", w.graph([w.vk_tensor([1], constant=-2)])),
    ("constant ids", w.graph([w.vk_tensor([1], constant=0)])),
    ("mem_obj_id", w.graph([w.vk_tensor([1], mem_obj=-2)])),
    ("storage_type", w.graph([w.vk_tensor([1], _4=w.u8(3))])),
    ("memory_layout", w.graph([w.vk_tensor([1], _5=w.u8(7))])),
    ("VkTensor.dims", w.graph([w.vk_tensor([(1 << 32) - 1] * 2)])),
    ("at most 16", w.graph([w.vk_tensor([1] * 17)])),
    ("OperatorCall.args", w.graph([w.vk_int(1)], chain=[w.call("add", 0, 1)])),
    ("OperatorCall.args", w.graph([w.vk_int(1)], chain=[w.call("add", -1)])),
    ("OperatorCall.name", w.graph([], chain=[w.Table()])),
    ("input_ids", w.graph([], inputs=[0])),
    ("input_ids.*a Null", w.graph([w.union(1, w.Table())], inputs=[0])),
    ("output_ids.*a ValueList", w.graph([w.vk_list()], outputs=[0])),
    ("a ValueList", w.graph([w.vk_list(0)])),
    ("a ValueList", w.graph([w.vk_list(1), w.vk_list(0)])),
    (r"values\[0\].items", w.graph([w.vk_list(1)])),
    ("shaders", w.graph([], _6=w.tables(w.vk_bytes(0, 0)))),
    ("VkBytes.offset", w.graph([w.vk_tensor([1], constant=0)], constants=[w.vk_bytes(1, 4)])),
    ("VkBytes.offset", w.graph([], constants=[w.vk_bytes(1 << 63, 1 << 63)])),
    ("named_key", w.graph([], constants=[w.vk_bytes(OUTSIDE, 0)])),
    ("length", w.graph([w.vk_tensor([2], constant=0)], constants=[w.vk_bytes(OUTSIDE, 4, "k")])),
])
def test_bad_graph(message, root):
    with pytest.raises(FormatError, match=message):
        read(root, tail=bytes(4), named={"k": pte.Span(0, 16)})


@pytest.mark.parametrize("position, code, value, message", [
    (4, "I", 0, "magic"), (8, "H", 29, "length"), (8, "H", 65535, "length"),
    (10, "I", 29, "flatbuffer_offset"), (10, "I", 1 << 31, "flatbuffer_size"),
    (14, "I", (1 << 32) - 1, "flatbuffer_size"), (14, "I", 0, "VkGraph flatbuffer"),
    (18, "I", 40, "bytes_offset"), (22, "Q", 1, "bytes_size"), (22, "Q", 1 << 63, "bytes_size"),
    (36, "I", 0, "VkGraph identifier"), (32, "I", 1 << 31, "VkGraph root"),
])
def test_bad_header(position, code, value, message):
    data = bytearray(sample_blob())
    struct.pack_into("<" + code, data, position, value)
    with pytest.raises(FormatError, match=f"{message}.* at file offset"):
        pte.read_delegate(data, pte.Span(0, len(data)), {KEY: pte.Span(0, 48)})


def test_bad_span():
    data = sample_blob()
    for span in (pte.Span(0, len(data) + 1), pte.Span(len(data) - 10, 10), pte.Span(1 << 70, 100)):
        with pytest.raises(FormatError):
            pte.read_delegate(data, span, {})
