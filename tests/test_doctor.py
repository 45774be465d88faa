"""`vkrt doctor`: what it says of a device, and that a wrong result is one."""

import json
import os
import platform
import pwd
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import python, raising

from vkrt.cli import selftest
from vkrt.cli.main import main
from vkrt.cli.report import private
from vkrt.errors import DeviceLostError
from vkrt.method.method import Method
from vkrt.version import __version__

pytestmark = pytest.mark.driver
FEW = selftest.PROGRAMS[:2]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(selftest, "PROGRAMS", FEW)


def test_every_family_computes_right(device):
    found = list(selftest.run(device))
    assert len(found) == 3 * sum(len(program.dtypes) for program in selftest.PROGRAMS)
    assert not [finding for finding in found if finding.wrong or finding.message]


@pytest.mark.usefixtures("few")
def test_what_is_said(output_of, json_of):
    report = json_of("doctor", "--quick")
    assert report["limits"]["maxPushConstantsSize"] >= 128
    fields = report["profile"]["fields"]
    assert fields["storage"]["value"] == report["profile"]["storage"]
    assert fields["measured"]["file"].endswith(".json") and not fields["lanes"]["is_the_users"]
    # The drivers that were measured are those of CPUs.
    assert report["profile"]["shares"] != report["profile"]["is_measured"]
    assert set(report["weights"]) == {"map", "direct", "staged", "stream"}
    assert len(report["selftest"]) == 6 * len(FEW) and not report["wrong"]
    said = output_of("doctor", "--quick")
    assert report["device"]["name"] in said and "12 programs, none wrong" in said
    for name, value in fields.items():
        assert f"\nentry     {name} {json.dumps(value['value'])} ({value['file']}" in said


@pytest.mark.usefixtures("few")
def test_lines_come_as_they_are_known(monkeypatch, capsys):
    """What is reported comes first, and a family of kernels when the next one has begun."""
    said = []
    right = selftest._graph

    def watched(program, dtype):
        said.append(capsys.readouterr().out)
        return right(program, dtype)

    monkeypatch.setattr(selftest, "_graph", watched)
    assert main(["doctor", "--quick"]) == 0
    assert said[0].startswith("vkrt ") and "\nlimit " in said[0] and "selftest" not in said[0]
    assert said[1:] == ["", "", said[3]] and said[3].startswith(f"selftest  {FEW[0].name} ")
    assert capsys.readouterr().out.startswith(f"selftest  {FEW[1].name} ")


def test_a_wrong_result_fails(monkeypatch, run_vkrt):
    unary, binary = FEW
    wrong = replace(binary, compute=lambda x, y: x + y + 1e-3)
    monkeypatch.setattr(selftest, "PROGRAMS", (unary, wrong))
    code, said, _ = run_vkrt("doctor", "--quick")
    assert code == 1 and "WRONG     binary in float32, texel: relative error" in said
    assert "WRONG     unary" not in said


class Flipping:
    """A method one bit of whose results changes in its third run."""

    def __init__(self, *arguments, **options):
        self.method, self.runs = Method(*arguments, **options), 0
        self.work, self.close = self.method.work, self.method.close

    def execute(self, inputs):
        results = self.method.execute(inputs)
        self.runs += 1
        if self.runs == 3:
            results[0].view(np.uint8).reshape(-1)[0] ^= 1
        return results


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("repeat", [2, 3, None])
def test_bits_that_change_fail(repeat, monkeypatch, run_vkrt):
    """Each check runs as often as it is asked to, or a hundred times; the shaders are named."""
    monkeypatch.setattr(selftest, "Method", Flipping)
    arguments = [] if repeat is None else ["--repeat", repeat]
    code, out, _ = run_vkrt("doctor", "--quick", *arguments)
    assert code == (0 if repeat == 2 else 1)
    said = [line for line in out.splitlines() if line.startswith("WRONG")]
    assert len(said) == (0 if repeat == 2 else 6 * len(FEW))
    if said:
        assert said[0] == (f"WRONG     unary in float32, texel: run 3 of {repeat or 100} has other "
                           "bits than the first by copy.texel.f32, unary.texel.f32")


@pytest.mark.usefixtures("few")
def test_a_device_that_is_lost_ends_it(monkeypatch, run_vkrt):
    monkeypatch.setattr(selftest, "_result", raising(DeviceLostError, "gone"))
    code, said, _ = run_vkrt("doctor")
    assert code == 1 and "the test ended: DeviceLostError" in said and "\nceiling " not in said


# The report


@pytest.mark.usefixtures("few")
def test_a_report_has_what_a_helper_asks(device, tmp_path, monkeypatch, run_vkrt, json_of,
                                         error_of):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MESA_DEBUG", "silent")
    code, printed, note = run_vkrt("doctor", "--quick", "--report")
    assert code == 0
    report = Path("vkrt-report.txt").read_text()
    assert report.startswith(f"report    of vkrt doctor {__version__}\n")
    assert report.endswith(printed) and printed.endswith("12 programs, none wrong\n")
    for line in (f"kernel    Linux {platform.release()} {platform.machine()}",
                 f"python    CPython {platform.python_version()}",
                 f"package   numpy {np.__version__}", "variable  MESA_DEBUG=silent",
                 f"driver    {device.info.driver_name} {device.info.driver_info}".rstrip()):
        assert f"\n{line}\n" in report
    assert note == "vkrt: wrote vkrt-report.txt; read it before you show it to others\n"
    # Another report is written over, with the figures for programs beside it, another file is not.
    assert json_of("doctor", "--quick", "--report", "vkrt-report.txt")["wrong"] is False
    Path("letter.txt").write_text("Dear")
    error = error_of(2, "doctor", "--report", "letter.txt")
    assert "--report: a file is there that is not a report" in error
    assert sorted(os.listdir()) == ["letter.txt", "vkrt-report.txt"]


@pytest.mark.usefixtures("few")
def test_a_report_has_nothing_private(tmp_path, monkeypatch, output_of):
    home = tmp_path / "home" / "alice"
    home.mkdir(parents=True)
    monkeypatch.chdir(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "alice")
    monkeypatch.setattr(platform, "node", lambda: pytest.fail("nobody asks for the machine's name"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(
        pw_name="alice", pw_dir=str(home)))
    for name in ("VKRT_API_KEY", "MESA_TOKEN", "AWS_SECRET_ACCESS_KEY", "SOMETHING"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("VK_LAYER_PATH", f"{home}/layers:/mnt/alice-disk/layers")
    output_of("doctor", "--quick", "--report")
    report = Path("vkrt-report.txt").read_text()
    assert "\nvariable  VK_LAYER_PATH=~/layers:/mnt/USER-disk/layers\n" in report
    assert "alice" not in report and "hunter2" not in report
    # What is no path stays: alice may be a word.
    assert private("alice /opt/alice/x") == "alice /opt/USER/x"
    assert private(f"{home} {home}-two") == f"~ {home.parent}/USER-two"


def test_a_report_of_what_does_not_work(tmp_path, monkeypatch):
    """It ends with the error, whether there is no driver or a fault of vkrt's own."""
    file = tmp_path / "report.txt"
    code = "from vkrt.cli.main import main; raise SystemExit(main())"
    done = python("-c", code, "doctor", "--report", file, VK_DRIVER_FILES="/nowhere.json",
                  VK_ICD_FILENAMES="/nowhere.json")
    assert done.returncode == 1 and "wrote" not in done.stderr
    report = file.read_text()
    assert "\nvariable  VK_DRIVER_FILES=/nowhere.json\n" in report
    assert "\ndevices   LoaderError: " in report and "/nowhere.json is not there" in report
    assert report.splitlines()[-2].startswith("error     LoaderError: ")
    assert report.endswith("\nresult    none: vkrt doctor did not come to its end\n")

    monkeypatch.setattr(selftest, "run", lambda device, runs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["doctor", "--report", str(file)])
    report = file.read_text()
    assert "\nlimit     " in report and "\nerror     Traceback" in report
    assert "\nerror     ZeroDivisionError: " in report and report.endswith("to its end\n")


def test_a_driver_that_ends_the_process_leaves_a_report(tmp_path):
    file = tmp_path / "report.txt"
    code = """
import os
from vkrt.cli import main, selftest
first, second, *_ = selftest.PROGRAMS
graph = selftest._graph
selftest.PROGRAMS = first, second
selftest._graph = lambda program, dtype: os._exit(9) if program is second else graph(program, dtype)
raise SystemExit(main.main())
"""
    done = python("-c", code, "doctor", "--report", file)
    assert done.returncode == 9 and os.listdir(tmp_path) == [file.name]
    report = file.read_text()
    assert "\nlimit     " in report and report.endswith("to its end\n")
