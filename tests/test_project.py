"""The files of the project itself: what they name is there, and what they run is what people run.

`.github/`, `.pre-commit-config.yaml`, the changelog and what tools/deploy has to copy. The README
files are in tests/test_readme.py.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import parser_of

import vkrt
from vkrt.cli import main as cli
from vkrt.cli.report import FILE as REPORT

ROOT = Path(__file__).parent.parent
FORMS = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
# It checks out vkrt beside the tests of somebody else's project.
TO_COPY = ROOT / "tools" / "deploy" / "tests-of-your-project.yml"
DOCKERFILE = ROOT / "tools" / "deploy" / "Dockerfile"
HOOKS = ROOT / ".pre-commit-config.yaml"
PATHS = [ROOT / "CHANGELOG.md", HOOKS, TO_COPY, DOCKERFILE, *sorted(ROOT.glob(".github/*.md")),
         *FORMS, *WORKFLOWS]
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PATHS}
# What machines of GitHub have, or install, beside what tools/setup-system brings
THERE = {"python3", "pipx", "grep"}


def test_the_files_are_found():
    assert {"CHANGELOG.md", ".pre-commit-config.yaml", ".github/CONTRIBUTING.md",
            ".github/SECURITY.md", ".github/ISSUE_TEMPLATE/bug.yml",
            ".github/ISSUE_TEMPLATE/operator.yml", ".github/workflows/tests.yml",
            ".github/workflows/wheels.yml"} <= set(TEXTS)
    # What is added later is looked at too, and is of a kind that these tests know.
    assert {path for path in ROOT.glob(".github/**/*") if path.is_file()} <= set(PATHS)


@pytest.mark.parametrize("name", TEXTS)
def test_named_files_are_there(name):
    text = TEXTS[name]
    named = re.findall(r"(?<![\w/.~])((?:tools|tests|vkrt|shaders)/[\w./-]*\w)", text)
    links = re.findall(r"\]\(([^)#:]+)", text) if name.endswith(".md") else []
    missing = [path for path in named if not (ROOT / path).exists()]
    missing += [link for link in links if not (ROOT / name).parent.joinpath(link).exists()]
    # Names without their folder: some file of the repository has them.
    there = {path.name for folder in ("vkrt", "tools", "tests", "shaders")
             for path in (ROOT / folder).rglob("*")} | {path.name for path in ROOT.iterdir()}
    for file in re.findall(r"(?<![\w/.*-])(\w[\w-]*\.(?:py|md|toml|txt|c|h))\b", text):
        if file not in there and file != REPORT:
            missing.append(file)
    assert not missing


@pytest.mark.parametrize("name", TEXTS)
def test_named_commands_and_options_are_there(name):
    said = re.findall(r"(?:`|/bin/)vkrt ([a-z]+)([^`\n]*)", TEXTS[name])
    for command, rest in said:
        assert command in cli.COMMANDS, command
        options = parser_of(command)._option_string_actions
        assert set(re.findall(r"--[a-z][a-z-]*", rest)) <= set(options), (command, rest)
    scripts = re.findall(r"(?<![\w.~])(tools/[a-z-]+)((?: --[a-z-]+)+)", TEXTS[name])
    for script, options in scripts:
        usage = (ROOT / script).read_text(encoding="utf-8")
        assert [word for word in options.split() if word not in usage] == []


def test_names_of_the_changelog_are_there():
    """In Python and in C: what somebody reads there can be typed."""
    text = TEXTS["CHANGELOG.md"]
    named = set(re.findall(r"`(vkrt|Program|Device)\.(\w{2,})", text))  # vkrt.h is a file
    assert {("vkrt", "generate"), ("Program", "new_state"), ("Device", "adopt")} <= named
    missing = []
    for owner, attribute in sorted(named):
        holder = vkrt if owner == "vkrt" else getattr(vkrt, owner)
        if not hasattr(holder, attribute) and not (ROOT / "vkrt" / attribute).is_dir():
            missing.append(f"{owner}.{attribute}")
    header = (ROOT / "vkrt" / "capi" / "vkrt.h").read_text(encoding="utf-8")
    missing += [word for word in re.findall(r"\bvkrt_[a-z_]+\b|\bVKRT_OK\b", text)
                if word not in header]
    assert not missing


def test_the_newest_version_is_that_of_the_package():
    assert re.search(r"^## (\S+)", TEXTS["CHANGELOG.md"], re.MULTILINE)[1] == vkrt.__version__


# Workflows

def steps(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as a truth.
    assert workflow["name"] and workflow[True] and workflow["jobs"]
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", [*WORKFLOWS, TO_COPY], ids=lambda path: path.name)
def test_workflows_run_what_is_there(path):
    for step in steps(path):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d[\d.]*", step["uses"]), step
            continue
        for line in step["run"].split("&&"):
            program = shlex.split(line)[0].removeprefix("vkrt-source/")
            assert program in THERE or program.startswith("env/bin/") or (
                os.access(ROOT / program, os.X_OK)), line


def test_every_change_is_tested_by_what_the_readme_says():
    """Somebody who types the README's lines sees what continuous integration sees."""
    path = ROOT / ".github" / "workflows" / "tests.yml"
    lines = [step["run"] for step in steps(path) if "run" in step]
    assert lines == ["tools/quickstart", "tools/test --all"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n    tools/quickstart\n" in readme and "`tools/test` tests vkrt" in readme
    assert "tools/test --all " in (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    assert "tools/test --all " in TEXTS[".github/CONTRIBUTING.md"]
    # What is kept of a failure is where the tools write it.
    kept = [step["with"]["path"] for step in steps(path)
            if "upload-artifact" in step.get("uses", "")]
    logs = (ROOT / "tools" / "quietly.sh").read_text(encoding="utf-8")
    assert kept and all(f"/{folder}\n" in logs for folder in kept)


def test_a_tag_is_the_version():
    line, = (step["run"] for step in steps(ROOT / ".github" / "workflows" / "wheels.yml")
             if "GITHUB_REF_NAME" in step.get("run", ""))

    def code(tag):
        return subprocess.run(["bash", "-c", line], cwd=ROOT, check=False,
                              env={**os.environ, "GITHUB_REF_NAME": tag}).returncode

    assert code(f"v{vkrt.__version__}") == 0
    assert code(f"v{vkrt.__version__}.1") == 1 and code("v1") == 1


def test_wheels_are_built_by_a_release_that_knows_the_settings():
    """Before 3.1 cibuildwheel refuses the whole file where it has settings for Android."""
    uses, = (step["uses"] for step in steps(ROOT / ".github" / "workflows" / "wheels.yml")
             if "cibuildwheel" in step.get("uses", ""))
    major, minor = map(int, re.search(r"@v(\d+)\.(\d+)", uses).groups())
    assert (major, minor) >= (3, 1)


# Containers and other places

def test_a_container_is_built_of_what_is_there():
    """Its second stage has the packages that an installed vkrt needs, and runs as no root."""
    stages = re.split(r"^FROM ", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [stage.split()[0] for stage in stages] == ["debian:trixie"] * 2
    build, final = stages
    assert "RUN tools/setup-system && " in build and "pip wheel " in build
    wheels = re.search(r"-w (/\w+) \.", build)[1]
    assert f"COPY --from=build {wheels} {wheels}" in final and f"{wheels}/*.whl" in final
    setup = (ROOT / "tools" / "setup-system").read_text(encoding="utf-8")
    for package in ("libvulkan1", "mesa-vulkan-drivers"):
        assert package in final and f"want {package}" in setup
    assert final.index("USER user") < final.index("/vkrt/bin/vkrt doctor")


def test_every_place_says_what_was_tried():
    text = (ROOT / "tools" / "deploy" / "README.md").read_text(encoding="utf-8")
    places = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    assert {"Containers", "Raspberry Pi", "Android"} < set(places[::2])
    for name, said in zip(places[::2], places[1::2]):
        assert len(re.findall(r"^\*Tried:\* ", said, re.MULTILINE)) == 1, name
        assert len(said.splitlines()) <= 25, name


# Issues and what is looked at before a commit

@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms_are_as_github_reads_them(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"]
    names = [element["id"] for element in form["body"]]
    assert len(set(names)) == len(names)
    for element in form["body"]:
        assert element["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert element["attributes"]["label"]
        assert set(element["attributes"]) <= {"label", "description", "placeholder", "render"}
        assert set(element) <= {"type", "id", "attributes", "validations"}


def test_forms_ask_for_a_report():
    for path in FORMS:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        doctor, = (element for element in form["body"] if element["id"] == "doctor")
        assert "`vkrt doctor --report`" in doctor["attributes"]["label"]
        assert path.stem != "bug" or (doctor["validations"] == {"required": True}
                                      and f"`{REPORT}`" in doctor["attributes"]["description"])


def test_hooks_are_what_the_tests_end_with():
    hooks = {hook["id"]: hook for repository in yaml.safe_load(TEXTS[HOOKS.name])["repos"]
             for hook in repository["hooks"]}
    assert set(hooks) == {"ruff", "cython-lint", "mypy", "clang-format"}
    tested = (ROOT / "tools" / "test").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in ("ruff", "cython-lint", "mypy"):
        entry = hooks[name]["entry"].removeprefix(".venv/bin/")
        assert re.search(rf"quietly {name} {entry}\b", tested), name
        assert shutil.which(shlex.split(entry)[0], path=os.path.dirname(sys.executable))
        for needed in hooks[name].get("additional_dependencies", ()):
            assert f'"{needed}"' in project  # the releases that the tests take
    # Their files are those that there are.
    sources = [str(path.relative_to(ROOT)) for folder in ("vkrt", "shaders", "tools")
               for path in (ROOT / folder).rglob("*.*")]
    for name in ("cython-lint", "mypy", "clang-format"):
        assert sum(bool(re.search(hooks[name]["files"], path)) for path in sources) > 20, name
    assert (ROOT / ".clang-format").is_file() and (ROOT / "shaders" / ".clang-format").is_file()
