"""What a run of the tests says at its end: failures by their causes, missing programs, and where
its time went.

The hooks here belong to conftest.py, which imports them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from support import NOT_HERE, model_folders

# Causes that are shown in full, lines of the first failure of each, and tests that are named.
MAX_CAUSES = 20
MAX_LINES = 60
MAX_TESTS = 3

# Files of tests that are named, the slowest first.
MAX_FILES = 12


def pytest_addoption(parser):
    parser.addoption(
        "--failures", metavar="FILE",
        help="write every failure in full to FILE, and show the first one of every cause only")


def pytest_configure(config):
    model_folders()  # says so if one does not exist
    if config.getoption("failures") and config.option.tbstyle == "auto":
        config.option.tbstyle = "short"


def pytest_sessionfinish(session):
    """From here on reports are only shown, and showing them is done here."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("failures") and reporter is not None:
        session.config.option.tbstyle = "no"
        reporter.reportchars = ""


def pytest_terminal_summary(terminalreporter, config):
    stats = terminalreporter.stats
    failed = [*stats.get("failed", ()), *stats.get("error", ())]
    if failed and config.getoption("failures"):
        show_failures(failed, config.getoption("failures"), terminalreporter)
    show_missing(stats.get("skipped", ()), terminalreporter)
    show_times(terminalreporter)


def cause_of(report) -> str:
    """What failures have in common that have one cause: the place, and the first line of what was
    said but for its numbers."""
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash is not None else report.longreprtext
    line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", next(iter(said.strip().splitlines()), ""))
    return f"{os.path.relpath(crash.path)}:{crash.lineno}: {line}" if crash is not None else line


def show_failures(failed, file: str, terminal) -> None:
    """Writes the failures to a file and shows the first one of every cause, the commonest first."""
    causes: dict[str, list] = {}
    for report in failed:
        causes.setdefault(cause_of(report), []).append(report)
    Path(file).write_text("\n".join(
        f"==== {report.nodeid} ({report.when})\n{report.longreprtext}\n"
        + "".join(f"---- {title}\n{text}\n" for title, text in report.sections)
        for report in failed), encoding="utf-8")
    terminal.section(f"failures: {len(failed)}, causes: {len(causes)}")
    ordered = sorted(causes.items(), key=lambda item: -len(item[1]))
    for index, (cause, reports) in enumerate(ordered):
        names = ", ".join(report.nodeid for report in reports[:MAX_TESTS])
        more = f" and {len(reports) - MAX_TESTS} more" if len(reports) > MAX_TESTS else ""
        terminal.write_line(f"---- {len(reports)} x {cause}", bold=True)
        terminal.write_line(f"in {names}{more}")
        if index < MAX_CAUSES:
            lines = reports[0].longreprtext.splitlines()
            if len(lines) > MAX_LINES:
                left = len(lines) - MAX_LINES
                lines = [*lines[:MAX_LINES // 2], f".. {left} lines are left out ..",
                         *lines[-MAX_LINES // 2:]]
            terminal.write("\n".join([*lines, "", ""]))
    terminal.write_line(f"every failure in full: {file}")


def show_missing(skipped, terminal) -> None:
    """Tests that were skipped because a program that they run is in no folder that is known."""
    missing = Counter(report.longrepr[2].partition(NOT_HERE)[2] for report in skipped
                      if isinstance(report.longrepr, tuple) and NOT_HERE in report.longrepr[2])
    if missing:
        terminal.section("missing programs")
        if not os.environ.get("VKRT_MODELS"):
            terminal.write_line("VKRT_MODELS, the folders of larger programs, is not set.")
        terminal.write_line(f"tests skipped for want of a file: {sum(missing.values())}; files "
                            f"that are missing: {len(missing)}")
        terminal.write_line(", ".join(sorted(missing)))


def show_times(terminal) -> None:
    """The files whose tests took the most seconds, all workers together."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminal.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                tests[file] += report.when == "call"
    if sum(tests.values()) > 1:
        terminal.section(f"seconds by file, {sum(seconds.values()):.0f} in all")
        for file, spent in seconds.most_common(MAX_FILES):
            terminal.write_line(f"{spent:8.1f}  {file} ({tests[file]})")


def failure_of(findings) -> str:
    """The validation messages of a test, each kind once; the first line is the same for tests that
    have one cause."""
    kinds = ", ".join(sorted({finding.id or "others" for finding in findings}))
    return "\n".join([f"validation messages: {kinds}",
                      *(f"{finding.times} x {finding.text}" for finding in findings)])
