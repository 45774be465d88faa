"""The line on stderr that says what a command waits for."""

from __future__ import annotations

import io
import threading

import pytest
from support import MODELS, raising, write_tokenizer

import vkrt
from vkrt.cli import main as cli
from vkrt.cli import progress
from vkrt.cli.progress import INTERVAL, PATIENCE, Progress
from vkrt.runtime.pipelines import Pipelines, in_the_making
from vkrt.vk import live_objects

MLP = str(MODELS / "mlp.pte")


def on_screen(written: str) -> str:
    """What stands in a line of a terminal after all that."""
    line, at = [], 0
    for sign in written:
        if sign == "\r":
            at = 0
            continue
        line[at:at + 1] = sign
        at += 1
    return "".join(line).rstrip()


class Screen(io.StringIO):
    @property
    def line(self) -> str:
        return on_screen(self.getvalue())


class Bench:
    """A line with a clock and a number of kernels that the test sets."""

    def __init__(self):
        self.screen, self.now, self.kernels = Screen(), 100.0, 0
        self.progress = Progress(self.screen, lambda: self.now, lambda: self.kernels)

    def after(self, seconds: float, kernels: int) -> str:
        """The line when so much time has passed and so many kernels are left."""
        self.now += seconds
        self.kernels = kernels
        self.progress.look()
        return self.screen.line


def test_compiling_shows_when_it_takes_long():
    bench = Bench()
    assert bench.after(0, 14) == ""
    assert bench.after(PATIENCE - 0.01, 14) == ""
    assert bench.after(0.01, 14) == "compiling 14 kernels .."
    assert bench.after(INTERVAL, 9) == "compiling 9 kernels .."
    assert bench.after(INTERVAL, 1) == "compiling 1 kernel .."
    assert bench.after(INTERVAL, 0) == ""


def test_short_compilations_do_not_add_up():
    bench = Bench()
    for _ in range(5):
        assert bench.after(0.9 * PATIENCE, 3) == ""
        assert bench.after(0.1, 0) == ""


def test_what_the_command_does_stands_before_and_after():
    bench = Bench()
    bench.progress.say("loading a program with a long name ..")
    assert bench.after(0, 4) == "loading a program with a long name .."
    assert bench.after(PATIENCE, 4) == "compiling 4 kernels .."
    assert bench.after(INTERVAL, 0) == "loading a program with a long name .."
    bench.progress.say("running ..")
    assert bench.screen.line == "running .."
    bench.progress.say("")
    assert bench.screen.line == ""


def test_what_stays_is_written_once():
    bench = Bench()
    bench.after(0, 4)
    bench.after(PATIENCE, 4)
    written = bench.screen.getvalue()
    bench.after(PATIENCE, 4)
    assert bench.screen.getvalue() == written


def test_a_bar_of_what_is_loaded():
    bench = Bench()
    bench.progress.say("loading ..")
    bench.progress.on_progress("read the program", 0, 0)
    assert bench.screen.line == "loading .."
    for done, bar in ((3, "." * 20), (300, "#" * 15 + "." * 5)):
        bench.progress.on_progress("weights", done * 10**6, 400 * 10**6)
        assert bench.screen.line == f"[{bar}] weights {done} of 400 MB, loading .."
    assert bench.after(0, 0) == bench.after(PATIENCE, 0) != "loading .."
    assert bench.after(0, 2) and bench.after(PATIENCE, 2) == "compiling 2 kernels .."
    assert "300 of 400 MB" in bench.after(INTERVAL, 0)
    bench.progress.on_progress("weights", 400 * 10**6, 400 * 10**6)
    assert bench.screen.line == "loading .."
    bench.progress.say("")
    assert bench.screen.line == ""


def test_a_line_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    bench = Bench()
    bench.progress.say("loading " + "a" * 100)
    assert bench.screen.line == "loading " + "a" * 21
    bench.progress.on_progress("weights", 1, 10**9)
    assert bench.screen.line == "[....................] weight"
    bench.progress.say("")
    assert bench.screen.line == ""


def test_a_stream_that_nobody_reads():
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Progress(Broken()).say("loading ..")


@pytest.mark.parametrize("end", ["finish", "close"])
def test_kernels_in_the_making_are_counted(device, monkeypatch, end):
    """Those of a load, until they are there or nobody wants them any more."""
    monkeypatch.setattr("vkrt.runtime.pipelines.usable_cores", lambda: 1)  # no thread begins
    with vkrt.load(MLP, device) as program:
        kernels = program.load_method("forward").largest.execution.kernels
        wanted = len(kernels)
    pipelines = Pipelines(device)
    try:
        pipelines.begin(kernels)
        assert in_the_making() == wanted > 1
        getattr(pipelines, end)()
        assert in_the_making() == 0
    finally:
        pipelines.close()


@pytest.mark.driver
@pytest.mark.parametrize("wanted", [True, False])
def test_the_command_line_decides(capsys, monkeypatch, wanted):
    """Without an option it is a terminal that does; what is left on it is nothing."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    before = threading.active_count()
    assert cli.main(["run", MLP, "--progress" if wanted else "--no-progress"]) == 0
    error = capsys.readouterr().err
    assert ("loading" in error and "running on" in error) == wanted
    assert on_screen(error) == "" and threading.active_count() == before
    assert cli.main(["run", MLP]) == 0
    assert capsys.readouterr().err == ""


class Terminal(Screen):
    """What stderr is where somebody looks."""

    def isatty(self):
        return True


# Weights in several batches, so that there is something between their beginning and end
COPIED = ["--weights", "copy", "--chunk", "4KiB"]


@pytest.mark.driver
@pytest.mark.parametrize(("command", "name", "words"), [
    ("run", "mlp", COPIED), ("bench", "mlp", [*COPIED, "--runs", "1"]),
    ("generate", "llama", [*COPIED, "--prompt", "w1", "--max-tokens", "1"]),
    ("compile", "conv_mix", [])])
def test_bars_are_for_terminals(command, name, words, capsys, monkeypatch, copy_of, tmp_path):
    """On one there is a bar with every command that loads for long. It is gone before the command
    ends, and not there where the output is for a program or stderr is a file."""
    model = copy_of(name)
    if command == "generate":
        write_tokenizer(tmp_path)
    part = "pack" if command == "compile" else "weights"
    bars = []
    for terminal, further in ((True, []), (True, ["--json"]), (False, [])):
        screen = Terminal() if terminal else Screen()
        monkeypatch.setattr("sys.stderr", screen)
        assert cli.main([command, str(model), *words, *further]) == 0
        written = screen.getvalue().partition("\n")[0]
        assert on_screen(written) == ""
        bars.append(written.count(f"] {part} "))
    monkeypatch.undo()
    assert bars[0] > 0 and bars[1:] == [0, 0]


# What on_progress= hears


@pytest.mark.parametrize("options", [{}, {"weights": "direct"}, {"weights": "copy"},
                                     {"memory_budget": "smallest"}], ids=str)
def test_progress_of_a_load(device, load, monkeypatch, options):
    """Every part when it is done, bytes of weights as they come, and nothing after the load. The
    weights and what is planned are those of a load that nobody follows."""
    monkeypatch.setattr("vkrt.runtime.weights.PROGRESS_BYTES", 4096)
    heard = []
    options = {"chunk": 4096, **options}
    with vkrt.load(MLP, device, **options) as silent:
        names = [span.name for span in silent.memory.stopwatch.spans]
        expected, = silent.run(x := silent.metadata().inputs[0].example())
    loud = load("mlp", **options, on_progress=lambda *words: heard.append(words))
    assert [name for name, done, total in heard if done == total] == names
    between = [words for words in heard if words[1] < words[2]]
    assert {name for name, _, _ in between} <= {"weights"}
    counts = [done for name, done, _ in heard if name == "weights"]
    assert counts == sorted(set(counts)) and counts[0] <= counts[-1]
    copied = sum(record.nbytes for record in loud.memory.placements
                 if record.placement in ("direct", "staged"))
    assert counts[-1] == copied and all(total in (0, copied) for _, _, total in heard)
    assert between or "weights" not in options
    count = len(heard)
    assert loud.run(x)[0].tobytes() == expected.tobytes() and len(heard) == count


@pytest.mark.parametrize("weights", ["direct", "copy"])
def test_what_is_raised_ends_the_load(device, monkeypatch, weights):
    monkeypatch.setattr("vkrt.runtime.weights.PROGRESS_BYTES", 4096)
    before = live_objects()
    for last in ("read the program", "start the driver", "weights", "allocate and record"):

        def stop(name, done, total, last=last):
            if name == last:
                raise KeyboardInterrupt(f"{name} {done}")

        with pytest.raises(KeyboardInterrupt, match=last):
            vkrt.load(MLP, device, weights=weights, chunk=4096, on_progress=stop)
        assert live_objects() == before


def test_progress_of_compiling(device, tmp_path):
    out, heard = tmp_path / "mlp.vkx", []
    done = vkrt.compile(MLP, out, device=device, on_progress=lambda *words: heard.append(words))
    assert len(heard) > 1 and {name for name, _, _ in heard} == {"pack"}
    assert heard[-1] == ("pack", done.weight_bytes, done.weight_bytes)
    out.unlink()
    with pytest.raises(ValueError, match="enough"):
        vkrt.compile(MLP, out, device=device, on_progress=raising(ValueError, "enough"))
    assert not any(tmp_path.iterdir())
