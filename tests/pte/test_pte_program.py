"""Reading of programs: container, plans, values, instructions, external data."""

import mmap
import struct

import pte_writer as w
import pytest
from pte_samples import KEY, WEIGHT, sample_program

from vkrt import pte
from vkrt.errors import FormatError, UnsupportedError
from vkrt.pte.plan import IntList


def bytes_of(data, span):
    return data[span.offset:span.end]


@pytest.mark.parametrize("header", [24, 32])
def test_sample(header):
    data = sample_program(header)
    program = pte.read_program(data)
    assert program.version == 0 and program.nbytes == len(data)
    assert [plan.name for plan in program.plans] == ["forward", "get_max_seq_len"]
    assert bytes_of(data, program.named_data[KEY]) == WEIGHT
    assert program.named_data["b" * 64] == program.named_data[KEY]
    plan = program.plan("forward")
    assert plan.inputs == (0,) and plan.outputs == (1,)
    assert plan.operators == ("aten::mean.out", "aten::copy_") and plan.buffer_sizes == (0, 64)
    assert plan.values[0] == pte.TensorMeta(6, "float32", (2, 4), (0, 1), memory=(1, 0))
    constant = plan.values[2]
    assert (constant.dtype, constant.nbytes, constant.mutable) == ("int64", 32, False)
    assert bytes_of(data, constant.constant) == bytes(range(32))
    assert plan.values[3:] == (
        None, 3, True, 2.5, "floor", IntList((4, 4)), pte.DoubleList((0.25,)),
        pte.BoolList((True,)), pte.TensorList((0, 1)), pte.OptionalTensorList((None, 2)))
    assert plan.instructions == (
        pte.DelegateCall(0, (0, 1)), pte.KernelCall(1, (1, 1, 3, 1)), pte.MoveCall(0, 1),
        pte.JumpFalseCall(5, 5), pte.FreeCall(1))
    assert plan.delegates[0].id == "VulkanBackend"
    assert plan.delegates[0].options == {"force_fp16": b"\1"}
    assert bytes_of(data, plan.delegates[0].span)[4:8] == b"VH00"
    assert program.plan("get_max_seq_len").values == (9,)
    assert program.plan("other") is None


def test_any_bytes_like(tmp_path):
    data = sample_program()
    expected = pte.read_program(data)
    for form in (bytearray(data), memoryview(data), memoryview(data + bytes(-len(data) % 4))
                 .cast("I")):
        assert pte.read_program(form).plans == expected.plans
    path = tmp_path / "a.pte"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        assert pte.read_program(mapping) == expected  # leaving the block closes the mapping
    path.write_bytes(data[:-1])
    # The mapping closes although the exception is still on its way up.
    with pytest.raises(FormatError, match="cut off"), path.open("rb") as file, mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        pte.read_program(mapping)


def test_no_header_inline_data():
    """A file from before segments: blobs and constants inside the flatbuffer."""
    data = w.program(
        [w.plan(values=[w.tensor([4], scalar_type=0, buffer=1)], delegates=[w.delegate(0, 0)])],
        header=0, _2=w.tables(w.Table(), w.Table({0: w.Vector("B", b"wxyz")})),
        _3=w.tables(w.Table({0: w.Vector("B", b"a blob")})))
    program = pte.read_program(data)
    assert bytes_of(data, program.plans[0].delegates[0].span) == b"a blob"
    assert bytes_of(data, program.plans[0].values[0].constant) == b"wxyz"
    with pytest.raises(FormatError, match="DataSegment"):
        pte.read_program(w.program([], header=0, _4=w.tables(w.Table({1: w.u64(1)}))))


def test_mutable_and_external_tensors():
    extra = w.Table({1: "model.state", 2: w.i8(1)})
    data = w.program(
        [w.plan(values=[w.tensor([2], buffer=1, memory=(1, 0)),
                        w.tensor([2], _9=extra),
                        w.tensor([2], memory=(1, 8), _9=extra),
                        w.tensor([2]),
                        w.tensor([9], _8=w.i8(2), memory=(1, 0))], buffers=[0, 16])],
        segments=[b"", bytes(range(16))],
        _6=w.tables(w.Table({0: w.u32(1), 1: w.Vector("Q", [0, 8])})))
    state, outside, both, free, unbounded = pte.read_program(data).plans[0].values
    assert state.mutable and state.memory == (1, 0)
    assert bytes_of(data, state.constant) == bytes(range(8, 16))
    assert outside.external_key == "model.state" and not outside.mutable
    assert both.mutable and both.constant is None and both.memory == (1, 8)
    assert (free.constant, free.memory, free.mutable) == (None, None, False)
    assert unbounded.dynamism == 2


def test_element_types_that_no_kernel_has():
    """They are read: which operators use them is for the graph to say."""
    plan = w.plan(values=[w.tensor([3], scalar_type=9), w.tensor([2], scalar_type=23)])
    first, second = pte.read_program(w.program([plan])).plans[0].values
    assert (first.dtype, first.nbytes) == ("complex64", 24)
    assert (second.dtype, second.nbytes) == ("float8_e5m2", 2)
    with pytest.raises(FormatError, match=r"Tensor\.scalar_type"):
        pte.read_program(w.program([w.plan(values=[w.tensor([1], scalar_type=99)])]))


def test_bundled_and_other_files():
    data = bytearray(sample_program())
    data[4:8] = b"BP08"
    with pytest.raises(UnsupportedError, match="bundled"):
        pte.read_program(data)
    data[4:8] = b"ET99"
    with pytest.raises(FormatError, match="Program identifier at file offset 4"):
        pte.read_program(data)
    with pytest.raises(UnsupportedError, match="schema version 7"):
        pte.read_program(w.program([], _0=w.u32(7)))
    with pytest.raises(UnsupportedError, match="chain"):
        pte.read_program(w.program([w.plan(chains=2)]))
    for junk in (b"", b"abc", bytes(8), bytes(1000), b"PK\3\4" + bytes(100)):
        with pytest.raises(FormatError):
            pte.read_program(junk)


@pytest.mark.parametrize("position, code, value, message", [
    (12, "I", 23, "header.length"), (12, "I", 1 << 31, "header.length"),
    (16, "Q", 39, "header.program_size"), (16, "Q", 1 << 63, "header.program_size"),
    (24, "Q", 8, "header.segment_base_offset"), (24, "Q", 1 << 40, "header.segment_base_offset"),
    (24, "Q", 0, "DataSegment"), (32, "Q", 1 << 20, "header.segment_data_size"),
    (32, "Q", 0, "DataSegment"), (0, "I", 1 << 30, "Program root"), (0, "I", 0, "Program root"),
])
def test_bad_header(position, code, value, message):
    data = bytearray(sample_program())
    struct.pack_into("<" + code, data, position, value)
    with pytest.raises(FormatError, match=message):
        pte.read_program(data)


@pytest.mark.parametrize("offset, size", [(0, 49), (49, 0), (1 << 63, 1 << 63), (0, (1 << 64) - 1),
                                          ((1 << 64) - 1, 1)])
def test_segment_out_of_file(offset, size):
    segment = w.tables(w.Table({0: w.u64(offset), 1: w.u64(size)}))
    with pytest.raises(FormatError, match=r"DataSegment\.offset at file offset"):
        pte.read_program(w.program([], segments=[WEIGHT], _4=segment))


BAD_PLANS = {
    "inputs": dict(inputs=[1], values=[w.vk_int(1)]),
    "outputs": dict(outputs=[-1], values=[w.vk_int(1)]),
    "op_index": dict(instructions=[w.union(1, w.Table({0: w.i32(0)}))]),
    "KernelCall.args": dict(instructions=[w.union(1, w.Table({1: w.i32s(1 << 30)}))],
                            operators=[("a", "")]),
    "delegate_index": dict(instructions=[w.union(2, w.Table({0: w.i32(-1)}))]),
    "move_to": dict(values=[w.vk_int(1)],
                    instructions=[w.union(3, w.Table({0: w.i32(0), 1: w.i32(1)}))]),
    "destination_instruction": dict(
        values=[w.vk_int(1)], instructions=[w.union(4, w.Table({0: w.i32(0), 1: w.i32(2)}))]),
    "value_index": dict(instructions=[w.union(5, w.Table())]),
    "instr_args_type": dict(instructions=[w.union(6, w.Table())]),
    "instr_args at": dict(instructions=[w.Table({0: w.u8(1)})]),
    "val_type": dict(values=[w.union(12, w.Table())]),
    "EValue.val at": dict(values=[w.Table({0: w.u8(2)})]),
    "TensorList|items": dict(values=[w.union(10, w.Table({0: w.i32s(0)}))]),
    r"values\[0\].items": dict(values=[w.union(7, w.Table({0: w.i64s(1 << 40)}))]),
    "got 1, a Bool": dict(values=[w.union(7, w.Table({0: w.i64s(1)})),
                                  w.union(3, w.Table({0: w.u8(1)}))]),
    "Tensor or Null": dict(values=[w.union(11, w.Table({0: w.i32s(-2)}))]),
    "dim_order": dict(values=[w.tensor([2, 3], order=[0, 0])]),
    "Tensor.sizes": dict(values=[w.tensor([2, -3])]),
    "2\\*\\*63": dict(values=[w.tensor([1 << 30] * 3)]),
    "at most 16": dict(values=[w.tensor([1] * 17)]),
    "scalar_type": dict(values=[w.tensor([1], scalar_type=99)]),
    "storage_offset": dict(values=[w.tensor([1], _1=w.i32(1))]),
    "layout": dict(values=[w.tensor([1], _7=w.i8(1))]),
    "shape_dynamism": dict(values=[w.tensor([1], _8=w.i8(3))]),
    "memory_id": dict(values=[w.tensor([1], memory=(0, 0))]),
    "memory_offset": dict(values=[w.tensor([1], memory=(1, 2))], buffers=[0, 4]),
    "data_buffer_idx": dict(values=[w.tensor([1], buffer=5)]),
    "inside the 44": dict(values=[w.tensor([12], buffer=1)]),
    "mutable_data_segments_idx": dict(values=[w.tensor([1], buffer=1, memory=(1, 0))],
                                      buffers=[0, 4]),
    "ExtraTensorInfo.location": dict(values=[w.tensor([1], _9=w.Table({2: w.i8(2)}))]),
    "fully_qualified_name": dict(values=[w.tensor([1], _9=w.Table({2: w.i8(1)}))]),
    "DataReference.location": dict(delegates=[w.delegate(0, 2)]),
    "DataReference.index": dict(delegates=[w.delegate(9)]),
    "non_const_buffer_sizes": dict(buffers=[0, -1]),
}


@pytest.mark.parametrize("message", BAD_PLANS)
def test_bad_plan(message):
    data = w.program([w.plan(**BAD_PLANS[message])], segments=[WEIGHT],
                     _5=w.Table({1: w.Vector("Q", [0, 4])}))
    with pytest.raises(FormatError, match=message):
        pte.read_program(data)


def test_bad_names():
    with pytest.raises(FormatError, match="different names"):
        pte.read_program(w.program([w.plan(), w.plan()]))
    with pytest.raises(FormatError, match="NamedData.key"):
        pte.read_program(w.program([], segments=[WEIGHT], named=[("a", 0), ("a", 0)]))
    with pytest.raises(FormatError, match="NamedData.segment_index"):
        pte.read_program(w.program([], segments=[WEIGHT], named=[("a", 1)]))
    with pytest.raises(FormatError, match="SubsegmentOffsets.offsets"):
        pte.read_program(w.program([], segments=[WEIGHT], _5=w.Table({1: w.Vector("Q", [49])})))


def test_external():
    data = w.external([("one", b"1111"), ("two", b"22")])
    named = pte.read_external(data)
    assert {key: bytes_of(data, entry.span) for key, entry in named.items()} == {
        "one": b"1111", "two": b"22"}
    for length in range(len(data)):
        with pytest.raises(FormatError):
            pte.read_external(data[:length])
    for position, value in ((12, 39), (16, 1 << 40), (24, 1 << 63), (32, 1 << 40), (40, 1 << 40)):
        bad = bytearray(data)
        struct.pack_into("<I" if position == 12 else "<Q", bad, position, value)
        with pytest.raises(FormatError, match=r"header\.|DataSegment"):
            pte.read_external(bad)


def test_external_layouts():
    data = w.external([("one", bytes(24))], layouts={"one": (6, [2, 3], [0, 1])})
    assert pte.read_external(data)["one"].layout == ("float32", (2, 3))
    for layout, words in (((99, [6], [0]), "scalar_type"), ((6, [-6], [0]), "sizes"),
                          ((6, [2, 3], [1, 0]), "dim_order"), ((6, [2, 3], [0]), "dim_order")):
        with pytest.raises(FormatError, match=f"TensorLayout.{words}"):
            pte.read_external(w.external([("one", bytes(24))], layouts={"one": layout}))


def test_several_external_files():
    first, second = w.external([("a", b"1111")]), w.external([("a", b"1111"), ("b", b"22")])
    both = pte.read_externals(b"", {}, [("x.ptd", first), ("y.ptd", second)])
    assert {key: entry.source for key, entry in both.named.items()} == {"a": 1, "b": 2}
    other = w.external([("a", b"1112")])
    with pytest.raises(FormatError, match=r"y\.ptd: key 'a' .* x\.ptd"):
        pte.read_externals(b"", {}, [("x.ptd", first), ("y.ptd", other)])
    with pytest.raises(FormatError, match=r"y\.ptd: key 'a' .* the program"):
        pte.read_externals(b"--1111", {"a": pte.Span(2, 4)}, [("x.ptd", first), ("y.ptd", other)])
    with pytest.raises(FormatError, match=r"^y\.ptd: "):
        pte.read_externals(b"", {}, [("x.ptd", first), ("y.ptd", second[:60])])


def test_every_byte_of_external_data():
    """Any byte of the header and the flatbuffer may have any value."""
    data = bytearray(w.external([("one", b"1111"), ("two", b"22")], layouts={"one": (6, [1], [0])}))
    for position in range(len(data)):
        old = data[position]
        for value in {0, 1, 4, 0x7f, 0x80, 0xff, old ^ 1, old ^ 8} - {old}:
            data[position] = value
            try:
                named = pte.read_external(data)
            except FormatError:
                continue
            assert all(entry.span.end <= len(data) for entry in named.values())
        data[position] = old
