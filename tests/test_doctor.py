"""`vkrt doctor`: what it says of a device, and that a wrong result is one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from vkrt.cli import selftest
from vkrt.cli.main import main
from vkrt.errors import DeviceLostError

pytestmark = pytest.mark.driver
FEW = selftest.PROGRAMS[:2]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(selftest, "PROGRAMS", FEW)


def test_every_family_computes_right(device, capsys):
    found = list(selftest.run(device))
    assert len(found) == 3 * sum(len(program.dtypes) for program in selftest.PROGRAMS)
    assert not [finding for finding in found if finding.wrong or finding.message]


@pytest.mark.usefixtures("few")
def test_what_is_said(capsys):
    assert main(["doctor", "--quick", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["limits"]["maxPushConstantsSize"] >= 128
    fields = report["profile"]["fields"]
    assert fields["storage"]["value"] == report["profile"]["storage"]
    assert fields["measured"]["file"].endswith(".json") and not fields["lanes"]["is_the_users"]
    # The drivers that were measured are those of CPUs.
    assert report["profile"]["shares"] != report["profile"]["is_measured"]
    assert set(report["weights"]) == {"map", "direct", "staged", "stream"}
    assert len(report["selftest"]) == 6 * len(FEW) and not report["wrong"]
    assert main(["doctor", "--quick"]) == 0
    said = capsys.readouterr().out
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


def test_a_wrong_result_fails(monkeypatch, capsys):
    unary, binary = FEW
    wrong = replace(binary, compute=lambda x, y: x + y + 1e-3)
    monkeypatch.setattr(selftest, "PROGRAMS", (unary, wrong))
    assert main(["doctor", "--quick"]) == 1
    said = capsys.readouterr().out
    assert "WRONG     binary in float32, texel: relative error" in said
    assert "WRONG     unary" not in said


@pytest.mark.usefixtures("few")
def test_a_device_that_is_lost_ends_it(monkeypatch, capsys):
    def lost(*arguments):
        raise DeviceLostError("gone", call="vkQueueSubmit")

    monkeypatch.setattr(selftest, "_result", lost)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "the test ended: DeviceLostError" in said and "\nceiling " not in said
