"""The line on stderr that says what a command waits for."""

from __future__ import annotations

import io
import threading

import pytest
from support import MODELS

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


def test_a_stream_that_nobody_reads():
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Progress(Broken()).say("loading ..")


@pytest.mark.driver
@pytest.mark.parametrize("end", ["finish", "close"])
def test_kernels_in_the_making_are_counted(device, monkeypatch, end):
    """Those of a load, until they are there or nobody wants them any more."""
    monkeypatch.setattr("vkrt.runtime.pipelines.usable_cores", lambda: 1)  # no thread begins
    with vkrt.load(MLP, device) as program:
        kernels = program.load_method("forward").prepared.execution.kernels
        wanted = live_objects()["pipeline"]
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
