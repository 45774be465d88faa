"""Fixtures: the device under test, and the checks that hold after every test."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from closing import (  # noqa: F401  hooks of pytest
    failure_of,
    pytest_addoption,
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from dealing import STORAGES, dealt
from host_device import LAYER_BUGS
from hostile_device import environment_of
from properties import header_of, load_profile
from support import path_of, ready_device, sorting_on_host

from vkrt.passes import rewrite

# Rows of the user's own, by which kernels are chosen, are not there.
os.environ["XDG_CONFIG_HOME"] = os.path.join(os.path.dirname(__file__), "no-configuration")

# Tests look at how a program is read, lowered and planned: that a test before has done so for the
# same file must not matter. Tests of cached plans name a folder.
os.environ["VKRT_PLAN_CACHE"] = "off"

# What a pass makes wrong fails a test, and is not left out.
rewrite.strict = True

# What the loader says where the environment asks for layers, as it does for profiles
EXPECTED = "env var 'VK_INSTANCE_LAYERS'"

# Every process of a run, and those that it starts, find the device of the profile.
PROFILE = os.environ.get("VKRT_TEST_PROFILE") or None
if PROFILE is not None:
    os.environ.update(environment_of(PROFILE))

# A shell ignores interrupts for what it starts in the background, and processes inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session):
    load_profile(session.config.getoption("--hypothesis-seed", None))


def pytest_report_header(config):
    seed = config.getoption("--hypothesis-seed", None)
    return [*([] if PROFILE is None else [f"profile: {PROFILE} (tests/hostile/profiles)"]),
            *header_of(seed)]


def pytest_itemcollected(item):
    """A test that takes the fixture `device` needs a driver; one marked `dealt` says so itself."""
    parameters = item.callspec.params if hasattr(item, "callspec") else ()
    if "device" in set(item.fixturenames) - set(parameters) and "dealt" not in item.keywords:
        item.add_marker("driver")


def pytest_collection_modifyitems(config, items):
    kept = dealt(items)
    taken = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = kept


@pytest.fixture(scope="session")
def device():
    """The device that VK_DRIVER_FILES selects; one for the whole run."""
    with ready_device() as opened:
        yield opened


@pytest.fixture(scope="session")
def discrete():
    """A device that counts as having memory of its own; one for the whole run."""
    from vkrt.vk.device_override import override_device

    with ExitStack() as stack:
        with override_device(discrete=True):
            opened = stack.enter_context(ready_device())
        assert not opened.unified
        yield opened


@pytest.fixture(params=STORAGES)
def storage(request):
    """A test that takes this is run in every storage."""
    return request.param


@pytest.fixture
def load(device):
    """Loads a program as `vkrt.load` does, or by its name in tests/models; on `device`, unless
    another one is given. It is closed at the end of the test."""
    import vkrt

    with ExitStack() as stack:
        def load(program, device=device, **options):
            return stack.enter_context(vkrt.load(path_of(program), device, **options))

        yield load


@pytest.fixture
def compiled_of(tmp_path):
    """Compiles a program, by its path or its name in tests/models; gives the path of the result."""
    import vkrt

    def compiled_of(program, **options):
        source = path_of(program)
        out = tmp_path / f"{source.stem}.vkx"
        vkrt.compile(source, out, **options)
        return out

    return compiled_of


@pytest.fixture
def copy_of(tmp_path):
    """Copies a program of tests/models, by its name, for a test that changes or removes it."""
    return lambda name: Path(shutil.copy(path_of(name), tmp_path))


@pytest.fixture
def any_age(monkeypatch):
    """Plans are cached of files that were made a moment ago, too, such as copies of a test."""
    monkeypatch.setattr("vkrt.compiler.plan_cache.RECENT_NS", 0)


@pytest.fixture
def run_vkrt(capsys, monkeypatch):
    """Runs the `vkrt` command in this process, on a text as standard input; gives its exit code,
    its output and its errors."""
    from vkrt.cli.main import main

    def run_vkrt(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run_vkrt


@pytest.fixture
def output_of(run_vkrt):
    """What the `vkrt` command prints; it has to succeed."""
    def output_of(*arguments):
        code, out, error = run_vkrt(*arguments)
        assert code == 0, error
        return out

    return output_of


@pytest.fixture
def json_of(output_of):
    """What the `vkrt` command prints with --json, as objects of Python."""
    return lambda *arguments: json.loads(output_of(*arguments, "--json"))


@pytest.fixture
def error_of(run_vkrt):
    """What the `vkrt` command says on stderr; it has to end with the exit code that comes first."""
    def error_of(expected, *arguments, stdin=""):
        code, _, error = run_vkrt(*arguments, stdin=stdin)
        assert code == expected, error
        return error

    return error_of


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def on_host():
    """Sorts and running sums of any size are done by numpy."""
    with sorting_on_host():
        yield


@pytest.fixture
def exact_sizes(device):
    """Buffers of exactly the bytes of their tensors, whatever the driver's profile says."""
    from dataclasses import replace

    from vkrt.device.policy import overridden, policy_of

    with overridden(replace(policy_of(device.info), avoid_recompile_padding=False)):
        yield


@pytest.fixture(scope="module", autouse=True)
def _frozen():
    """What is there before a file's first test is not looked through by the collections around each
    of its tests."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def released(request):
    """Nothing of the device may outlive a test that uses it."""
    if "driver" not in request.keywords:
        yield
        return
    from vkrt.vk import live_objects

    gc.collect()
    if "device" in request.fixturenames:
        request.getfixturevalue("device")
    before = live_objects()
    yield
    gc.collect()
    after = live_objects()
    left = {kind: (before.get(kind, 0), count) for kind, count in after.items()
            if count > before.get(kind, 0)}
    assert not left, f"objects left behind (before, after): {left}"


@pytest.fixture(autouse=True)
def valid(request):
    """Under VKRT_VALIDATION=1 every message of the validation layer fails the test it came from."""
    yield
    if os.environ.get("VKRT_VALIDATION") == "1" and "driver" in request.keywords:
        from vkrt.vk import clear_validation_messages, validation_findings

        findings = [finding for finding in validation_findings()
                    if not any(bug in finding.id or bug in finding.text for bug in LAYER_BUGS)
                    and EXPECTED not in finding.text]
        clear_validation_messages()
        if findings:
            pytest.fail(failure_of(findings), pytrace=False)


@pytest.fixture
def work_done(monkeypatch):
    """What is done for shapes: "lower" for a new one, "bind" for its handles and commands."""
    from vkrt.lowering import lowering
    from vkrt.method.instances import Instances

    done: list[str] = []
    bind, lower = Instances.bind, lowering.lower

    def count_bind(self, instance):
        did = bind(self, instance)
        done.extend(["bind"] * did)
        return did

    monkeypatch.setattr(Instances, "bind", count_bind)
    monkeypatch.setattr(lowering, "lower", lambda *args: done.append("lower") or lower(*args))
    return done
