"""What programs, methods, devices, states and reports say of themselves, and after their end."""

import copy
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from support import MODELS, examples_of

import vkrt
from vkrt.vk import live_objects

pytestmark = pytest.mark.driver

KEPT = MODELS / "kept.pte"


@pytest.fixture
def program(device):
    with vkrt.load(KEPT, device) as opened:
        yield opened


def test_lines(program, device):
    program.run(*examples_of(program))
    name, memory = re.escape(device.info.name), program.memory
    signature = re.escape(repr(program.metadata()))
    with program.new_state() as state:
        for thing, line in (
                (program, rf"<vkrt\.Program \S*kept\.pte on {name}: {signature}; [\d,]+ bytes at "
                          r"most>"),
                (program.load_method("forward"), f"<vkrt.Method {signature}>"),
                (device, f"<vkrt.Device {name}>"),
                (device.info, f"<vkrt.DeviceInfo 0: {name}, {device.info.type}, .*Vulkan "
                              rf"{device.info.api_version}>"),
                (memory, f"<vkrt.MemoryReport .*state .* bytes; peak {memory.planned_peak:,} "
                         f"planned, {memory.measured_peak:,} measured>"),
                (state, f"<vkrt.State of method 'forward', {state.nbytes:,} bytes>")):
            assert re.fullmatch(line, repr(thing)), repr(thing)
    assert repr(state) == "<vkrt.State of method 'forward', closed>"
    method = program.load_method("forward")
    program.close()
    assert repr(program).endswith("kept.pte, closed>") and repr(method).endswith(", closed>")


def test_a_report_of_nothing():
    assert repr(vkrt.MemoryReport()) \
        == "<vkrt.MemoryReport nothing bytes; peak 0 planned, 0 measured>"


class Cells(HTMLParser):
    """The cells of a table, and whether every tag that begins ends."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def test_a_table_for_notebooks(program):
    shown = Cells(program._repr_html_())
    rows = dict(zip(shown.cells[::2], shown.cells[1::2], strict=True))
    metadata, memory = program.metadata(), program.memory
    assert shown.open == [] and rows["device"] == program.device.info.name
    for kind, infos in (("input", metadata.inputs), ("output", metadata.outputs)):
        for info in infos:
            assert rows[f"{kind} {info.name} of forward"] == str(info)
    assert rows["planned peak"] == f"{memory.planned_peak:,} B"
    for kind in {record.placement for record in memory.placements}:
        sizes = [r.nbytes for r in memory.placements if r.placement == kind]
        assert rows[f"{kind} weights"] == f"{len(sizes)}, {sum(sizes):,} B"


def test_texts_of_a_file_are_no_markup(load, tmp_path):
    path = tmp_path / "<b>&.pte"
    path.write_bytes(KEPT.read_bytes())
    shown = Cells(load(path)._repr_html_())
    assert str(path) in "".join(shown.cells) and "b" not in shown.open


CLOSED = {
    "run": lambda p: p.run(np.zeros(1)),
    "call": lambda p: p(np.zeros(1)),
    "run_async": lambda p: p.run_async(np.zeros(1)),
    "load_method": lambda p: p.load_method("forward"),
    "profile": lambda p: p.profile(np.zeros(1)),
    "new_state": lambda p: p.new_state(),
    "save_state": lambda p: p.save_state(),
    "load_state": lambda p: p.load_state({}),
    "reset_state": lambda p: p.reset_state("forward"),
    "reset all": lambda p: p.reset_state(),
    "release_buffers": lambda p: p.release_buffers(),
    "generate": lambda p: list(vkrt.generate(p, [1])),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_program(name, device):
    before = live_objects()
    program = vkrt.load(MODELS / "llama.pte" if name == "generate" else KEPT, device)
    program.close()
    with pytest.raises(vkrt.ClosedError, match="is closed"):
        CLOSED[name](program)
    assert {vkrt.VkrtError, ValueError} < set(vkrt.ClosedError.__mro__)
    assert live_objects() == before
    program.cancel()
    program.close()
    assert program.method_names and program.metadata().inputs and program.memory


@pytest.mark.usefixtures("any_age")
def test_a_closed_program_that_was_not_read(device, tmp_path):
    """What a cached plan has left unread in the file is an error of vkrt's, too; the numbers and
    texts that the program says of itself are in the plan."""
    known = []
    for _ in range(2):
        program = vkrt.load(MODELS / "named.pte", device, plan_cache=tmp_path)
        program.close()
        known.append(program.constants)
    assert known[0] == known[1] and known[0]["forward_input_names"]
    with pytest.raises(vkrt.ClosedError, match="named.pte is closed; load the program again"):
        program.metadata("forward_input_names")


def test_a_closed_method_and_state(device):
    program = vkrt.load(KEPT, device)
    method, state = program.load_method("forward"), program.new_state()
    x = examples_of(program)
    state.close()
    for act in (state.save, state.reset, lambda: state.load({}),
                lambda: program.run(*x, state=state)):
        with pytest.raises(vkrt.VkrtError):
            act()
    program.close()
    for act in (lambda: method.execute(x), lambda: method.start(x), lambda: method.profile(x),
                method.state.save, method.state.reset, method.new_state, method.release_buffers,
                state.save):
        with pytest.raises(vkrt.ClosedError, match="method 'forward' is closed"):
            act()
    state.close()
    method.close()


def test_a_closed_device():
    opened = vkrt.Device.open()
    opened.close()
    with pytest.raises(vkrt.ClosedError, match="is closed; open the device again"):
        vkrt.load(KEPT, opened)
    assert repr(opened).endswith(", closed>")


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_what_cannot_be_copied_says_what_to_do(program, device, act):
    run = program.run_async(*examples_of(program))
    run.result()
    with program.new_state() as state:
        for thing in (program, program.load_method("forward"), state, run):
            with pytest.raises(TypeError, match=f"a {type(thing).__name__} cannot be copied or "
                               r"sent to another process.*path of the \.pte file"):
                act(thing)
    with pytest.raises(TypeError, match=r"a Device cannot be .* call vkrt\.Device\.open there"):
        act(device)


def test_what_can_be_sent(program, device):
    """Values and errors: what a worker gives back."""
    for value in (program.metadata().inputs, device.info, vkrt.LoadOptions(),
                  program.memory.as_dict()):
        assert pickle.loads(pickle.dumps(value)) == value
    error = vkrt.DeviceMemoryError("no", -2, "vkAllocateMemory", asked=3, breakdown={"weights": 1})
    again = pickle.loads(pickle.dumps(error))
    assert (again.asked, again.call, again.breakdown, str(again)) \
        == (3, "vkAllocateMemory", {"weights": 1}, "no")
