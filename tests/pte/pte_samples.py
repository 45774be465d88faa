"""Programs for the tests: small synthetic ones, and whatever model files there are."""

import pte_writer as w
from support import model_folders

from vkrt.pte import DelegateCall, read_delegate, read_externals, read_program

KEY = "a" * 64
WEIGHT = bytes(range(48))  # float32 [3, 4]


def sample_blob():
    """linear(x, constant) with a list, a scalar of each kind and a symbolic int beside."""
    return w.blob(w.graph(
        values=[
            w.vk_tensor([2, 4], mem_obj=0, _4=w.u8(1), _5=w.u8(2)),
            w.vk_tensor([3, 4], constant=0),
            w.vk_tensor([2, 3], mem_obj=1, _6=w.i8(6)),
            w.union(1, w.Table()),
            w.vk_int(-7),
            w.union(3, w.Table({0: w.f64(0.5)})),
            w.union(4, w.Table({0: w.u8(1)})),
            w.union(6, w.Table({0: w.i64s(1, -2)})),
            w.union(7, w.Table({0: w.Vector("d", [1.5])})),
            w.union(8, w.Table({0: w.Vector("B", [0, 1])})),
            w.vk_list(0, 3, 11),
            w.union(11, w.Table({0: w.i32(0)})),
            w.union(10, w.Table({0: "none"})),
        ],
        chain=[w.call("aten.linear.default", 0, 1, 3, 2, node_id=5)],
        inputs=[0], outputs=[2],
        constants=[w.vk_bytes((1 << 64) - 1, 48, KEY)]))


def sample_program(header=32):
    return w.program(
        plans=[
            w.plan(
                values=[
                    w.tensor([2, 4], memory=(1, 0)), w.tensor([2, 3], memory=(1, 32)),
                    w.tensor([2, 2], scalar_type=4, buffer=1),
                    w.union(1, w.Table()), w.vk_int(3),
                    w.union(3, w.Table({0: w.u8(1)})),
                    w.union(4, w.Table({0: w.f64(2.5)})),
                    w.union(6, w.Table({0: "floor"})),
                    w.union(7, w.Table({0: w.i64s(4, 4)})),
                    w.union(8, w.Table({0: w.Vector("d", [0.25])})),
                    w.union(9, w.Table({0: w.Vector("B", [1])})),
                    w.union(10, w.Table({0: w.i32s(0, 1)})),
                    w.union(11, w.Table({0: w.i32s(-1, 2)})),
                ],
                inputs=[0], outputs=[1],
                instructions=[
                    w.union(2, w.Table({0: w.i32(0), 1: w.i32s(0, 1)})),
                    w.union(1, w.Table({0: w.i32(1), 1: w.i32s(1, 1, 3, 1)})),
                    w.union(3, w.Table({0: w.i32(0), 1: w.i32(1)})),
                    w.union(4, w.Table({0: w.i32(5), 1: w.i32(5)})),
                    w.union(5, w.Table({0: w.i32(1)})),
                ],
                operators=[("aten::mean", "out"), ("aten::copy_", "")],
                delegates=[w.delegate(0, options=[("force_fp16", b"\1")])],
                buffers=[0, 64]),
            w.plan(values=[w.vk_int(9)], outputs=[0], name="get_max_seq_len"),
        ],
        segments=[sample_blob(), WEIGHT, bytes(16) + bytes(range(32))],
        named=[(KEY, 1), ("b" * 64, 1)], header=header,
        _5=w.Table({0: w.u32(2), 1: w.Vector("Q", [0, 16])}))


def model_files(limit=1 << 62, suffix=".pte"):
    return sorted(path for folder in model_folders() for path in folder.iterdir()
                  if path.suffix == suffix and path.stat().st_size <= limit)


def external_of(path):
    """The `.ptd` data beside a program."""
    files = sorted(path.parent.glob("*.ptd"))
    return read_externals(b"", {}, [(item.name, item.read_bytes()) for item in files])


def read_all(data, external=None):
    """The program and the graph of each delegate that it calls."""
    program = read_program(data)
    graphs = []
    for plan in program.plans:
        for instruction in plan.instructions:
            if isinstance(instruction, DelegateCall):
                span = plan.delegates[instruction.delegate].span
                graphs.append((instruction, read_delegate(data, span, program.named_data,
                                                          external)))
    return program, graphs
