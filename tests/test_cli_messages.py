"""What the `vkrt` command says to somebody who makes a mistake, or looks for one."""

import inspect
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import fields

import pytest
from support import MODELS, parser_of, python, run_python

import vkrt
from vkrt.cli import main as cli
from vkrt.cli.common import ALIASES

MLP = str(MODELS / "mlp.pte")
ROOT = MODELS.parent.parent


@pytest.mark.driver
@pytest.mark.parametrize("command", ["run", "bench"])
def test_a_wrong_method_names_the_option(error_of, command):
    error = error_of(cli.EXIT_USAGE, command, MLP, "--method", "backward")
    assert "no method 'backward'" in error and "forward; choose one with --method" in error


@pytest.mark.driver
@pytest.mark.parametrize("arguments", [("--memory-budget", "1"),
                                       ("--memory-budget", "1", "--weights", "copy"),
                                       ("--stream-lookahead", "-1"), ("--pipeline-cache", "")])
def test_arguments_are_called_as_on_the_command_line(error_of, arguments):
    error = error_of(cli.EXIT_USAGE, "run", MLP, *arguments)
    assert error.startswith(f"vkrt: {arguments[0]} ") and "=" not in error


def test_without_a_command_they_are_listed(run_vkrt):
    code, out, _ = run_vkrt()
    assert code == cli.EXIT_USAGE
    for name, text in cli.COMMANDS.items():
        assert re.search(rf"^ +{name} +{re.escape(text[:40])}", out, re.MULTILINE)


# Devices and drivers


@pytest.mark.parametrize("command", ["info", "run"])
def test_a_device_that_is_not_there(error_of, device, command):
    error = error_of(cli.EXIT_USAGE, command, MLP, "--device", "a card")
    assert "there are" not in error and "no Vulkan device is 'a card'" in error
    assert f"{device.info.index} is {device.info.name} ({device.info.type})" in error


def test_types_are_names_of_devices(output_of, device):
    for name in (device.info.type, device.info.type.upper()):
        with vkrt.Device.open(name) as opened:
            assert opened.info.type == device.info.type
    output_of("run", MLP, "--device", device.info.type)
    others = {"cpu", "integrated", "discrete"} - {found.type for found in vkrt.devices()}
    for name in others:
        with pytest.raises(vkrt.InputError, match=f"no Vulkan device is '{name}'"):
            vkrt.Device.open(name)


@pytest.mark.driver
@pytest.mark.parametrize("there", [False, True], ids=["a file that is not there", "no driver"])
def test_a_wrong_choice_of_drivers_is_the_cause(tmp_path, there):
    path = tmp_path / "icd.json"
    if there:
        path.write_text("{}", encoding="utf-8")
    done = python("-m", "vkrt", "run", MLP, VK_DRIVER_FILES=str(path),
                  VK_ICD_FILENAMES=str(path), VKRT_VALIDATION="0")
    assert done.returncode == cli.EXIT_FAILED
    assert f"VK_DRIVER_FILES={path} says which drivers are used, and " + (
        "none of these works" if there else f"{path} is not there") in done.stderr


@pytest.mark.driver
def test_info_without_a_driver_says_what_is_in_the_file():
    nothing = {"VK_DRIVER_FILES": "/no.json", "VK_ICD_FILENAMES": "/no.json",
               "VKRT_VALIDATION": "0"}
    done = python("-m", "vkrt", "info", MLP, **nothing)
    assert done.returncode == 0 and done.stderr == ""
    for words in ("method forward", "float32[3,30]", "3 x aten.linear.default",
                  "memory is not predicted: there is no Vulkan driver"):
        assert words in done.stdout
    # Unless more was asked for
    done = python("-m", "vkrt", "info", MLP, "--compile", **nothing)
    assert done.returncode == cli.EXIT_FAILED and "float32[3,30]" in done.stdout


INVALID = """
    import sys
    import vkrt
    from vkrt.cli import main as cli
    from vkrt.errors import LoaderError
    from vkrt.vk.device import Device
    from vkrt.vk.resource import Buffer

    try:
        Device.open().close()
    except LoaderError:
        print("no layer")
        sys.exit()
    right = vkrt.Program.run

    def wrong(self, *inputs, **options):
        for _ in range(3):
            Buffer(self.device, 16, 0).close()  # a usage of 0 is not allowed
        return right(self, *inputs, **options)

    vkrt.Program.run = wrong
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.driver
def test_validation_messages_are_shown_and_fail_the_command():
    # Copied, as newer layers have words for how SwiftShader describes imported memory.
    command = ("-c", textwrap.dedent(INVALID), "run", MLP, "--weights", "copy")
    done = python(*command, VKRT_VALIDATION="1")
    if "no layer" in done.stdout:
        pytest.skip("the Khronos validation layer is not installed")
    assert done.returncode == cli.EXIT_FAILED
    assert "output 0: float32[3, 10]" in done.stdout
    assert done.stderr.count("vkrt: validation error: ") == 1
    assert "messages of the validation layer: errors 3, warnings " in done.stderr
    assert "       3 x VUID-VkBufferCreateInfo" in done.stderr
    # A failure of another kind keeps its code.
    assert python(*command, "--method", "x", VKRT_VALIDATION="1").returncode == cli.EXIT_USAGE


@pytest.mark.driver
def test_without_messages_nothing_is_said():
    done = python("-m", "vkrt", "run", MLP, VKRT_VALIDATION="0")
    assert done.returncode == 0 and done.stderr == ""


# Options have one name, one default and one sentence about them


def actions_of(command):
    """What a command takes, by the name of the attribute."""
    return {action.dest: action for action in parser_of(command)._actions if action.dest != "help"}


def documented(docstring):
    """The paragraphs of a docstring's arguments, by name, in one line each."""
    text = inspect.cleandoc(docstring).split("Args:\n")[1].split("\n\n")[0]
    parts = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)[1:]
    return {name: " ".join(said.split()) for name, said in zip(parts[::2], parts[1::2])}


@pytest.mark.parametrize("option", fields(vkrt.LoadOptions), ids=lambda o: o.name)
def test_an_option_is_the_same_in_python_and_on_the_command_line(option):
    said = documented(vkrt.load.__doc__)[option.name]
    assert said.startswith(option.metadata["help"])
    assert all(f'"{choice}"' in said for choice in option.metadata["choices"])
    assert inspect.signature(vkrt.load).parameters[option.name].default == option.default
    for command in ("info", "run", "bench"):
        action = actions_of(command)[option.name]
        assert f"--{option.name.replace('_', '-')}" in action.option_strings
        assert action.help.startswith(option.metadata["help"])
        assert action.default == option.default
        assert tuple(action.choices or ()) == option.metadata["choices"]


def test_every_option_is_documented():
    assert list(documented(vkrt.load.__doc__)) \
        == ["source", "device", *(option.name for option in fields(vkrt.LoadOptions)), "data_path",
            "on_progress"]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_option_of_a_command_says_what_it_is_and_its_default(command):
    for name, action in actions_of(command).items():
        assert action.help, name
        assert not action.option_strings or "default" in action.help, name


# What options with a unit count, by a word of what is said of them; the others are numbers alone.
UNITS = {"bytes": {"memory_budget", "chunk", "max_body"}, "seconds": {"max_seconds"},
         "tokens": {"max_tokens", "prefill", "top_k", "repeat_last_n", "min_p", "top_p"},
         "samples a second": {"rate"}, "requests": {"queue"}, "texts": {"conversations"},
         "sync points": {"stream_lookahead"}}
NUMBERS = {"seed", "port", "top", "runs", "temperature", "repetition_penalty"}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_options_say_their_units(command):
    units = {name: unit for unit, names in UNITS.items() for name in names}
    for name, action in actions_of(command).items():
        if name in units:
            assert units[name] in f"{action.metavar} {action.help}".lower(), name
        else:
            assert action.type not in (int, float) or name in NUMBERS, name


@pytest.mark.parametrize(("name", "alias"), ALIASES.items())
def test_former_names_of_options_still_work(name, alias):
    former, present = (getattr(parser_of("run").parse_args(["model", option, "3"]), name)
                       for option in (alias, f"--{name.replace('_', '-')}"))
    assert former == present


@pytest.mark.parametrize(("words", "error"), [
    (("--chunk", "many"), "argument --chunk: 'many': expected bytes, such as 300MB"),
    (("--storage", "paper"), "argument --storage: invalid choice: 'paper'"),
    (("--stream-lookahead", "x"), "argument --stream-lookahead"),
])
def test_values_that_are_none_are_usage_errors(capsys, words, error):
    with pytest.raises(SystemExit) as end:
        cli.main(["run", MLP, *words])
    assert end.value.code == cli.EXIT_USAGE and error in capsys.readouterr().err


@pytest.mark.parametrize(("line", "expected"), [
    ("vkrt ", cli.COMMANDS), ("vkrt do", ["doctor"]), ("vkrt run --exp", ["--explain-weights"]),
    ("vkrt run net.pte --weights ", ["auto", "copy", "map", "stream"])])
def test_shells_complete_commands_and_options(tmp_path, line, expected):
    pytest.importorskip("argcomplete")
    answer = tmp_path / "answer"
    python("-m", "vkrt", COMP_LINE=line, COMP_POINT=str(len(line)), _ARGCOMPLETE="1",
           _ARGCOMPLETE_STDOUT_FILENAME=str(answer), _ARGCOMPLETE_IFS=" ")
    assert set(expected) <= set(answer.read_text(encoding="utf-8").split())


def test_the_source_folder_says_that_it_is_in_the_way(tmp_path):
    """A copy of the sources stands for it, in which nothing is built."""
    shutil.copytree(ROOT / "vkrt", tmp_path / "vkrt", ignore=shutil.ignore_patterns("*.so"))
    done = subprocess.run([sys.executable, "-S", "-m", "vkrt", "devices"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (cli.EXIT_FAILED, "")
    assert done.stderr.startswith(f"vkrt: vkrt was imported from {tmp_path / 'vkrt'}, which has "
                                  "its sources and not its extension modules: ")
    assert done.stderr.count("\n") == 1


def test_only_the_command_that_is_asked_for_is_imported():
    said = run_python("import sys; from vkrt.cli import main as cli\n"
                      "try: cli.main(['compile', '--help'])\n"
                      "finally: print([n for n in sys.modules if n.startswith('vkrt.cli.')])")
    assert "vkrt.cli.compile" in said and "vkrt.cli.run" not in said
    assert "vkrt.cli.info" not in said and "vkrt.cli.bench" not in said
