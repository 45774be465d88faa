#!/usr/bin/env python3
"""Compare vkrt with other runtimes on the same networks, inputs and threads.

    tools/measure/bench_peers.py                      everything; prints tables in Markdown
    tools/measure/bench_peers.py --json OUT --write   and keeps every record, and puts the tables
                                                      into tools/README.md
    tools/measure/bench_peers.py --show OUT           prints the tables of kept records

Compared are vkrt in Python, vkrt in a host in C that runs a compiled program (vkrt-c), ncnn on
Vulkan (float32), ONNX Runtime and XNNPACK (in ExecuTorch's wheel) on the CPU, and eager PyTorch.
Needs a Python from 3.10 on, for PyTorch one up to 3.12; what else is needed is installed with pip
below --folder (several GB; --torch takes an interpreter that has torch==2.13.0 and
executorch==1.5.1 already), and vkrt with tools/setup-python where it is not. The models are made
there too, with random weights.

Every measurement is a process of its own. A run before the first round compares each result with
eager PyTorch's, and fills the driver's cache of shaders, which later runs find warm; in cold runs
it is an empty folder. What cannot be installed, run, or agrees with PyTorch to less than 1e-3 is
listed with the reason.

ExecuTorch's own Vulkan runtime is not in its wheel. Who has built it passes --executorch-vulkan
RUNNER, a command that is called as

    RUNNER MODEL.pte INPUT OUTPUT INFERENCES THREADS SIZE...

INPUT holds the float32 numbers of the one input, whose shape is SIZE..., and the float32 numbers of
the one output are to be written to OUTPUT. It loads the program, runs it once, then INFERENCES
times, and prints as its last line a JSON object of load_ms, load_cpu_ms, first_ms, first_cpu_ms
(numbers), run_ms, run_cpu_ms (lists of one number for each inference after the first; milliseconds
by the clock, and of all threads' CPU time), memory (bytes of VmHWM after the first run less VmRSS
before the load, or null), and, if it likes, version and device (strings).
"""

from __future__ import annotations

import argparse
import array
import datetime
import hashlib
import json
import math
import os
import platform
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fresh import with_caches
from peers import environments, report
from peers.environments import ROOT, Unavailable

HERE = Path(__file__).resolve().parent / "peers"
README = ROOT / "tools" / "README.md"
BEGIN, END = "<!-- peers -->\n", "<!-- end of peers -->\n"
NETWORKS = ("mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet50", "vit_tiny",
            "realesr-animevideov3")
# What is written by make.py and make_ncnn.py: a change of these makes the models anew.
MAKERS = ("networks.py", "make.py", "make_ncnn.py")
MAX_ERROR = 1e-3
# Seconds after which a process counts as hanging.
LIMIT = 900


@dataclass(frozen=True)
class Peer:
    """Whose environment its runner needs, the file that it takes, and whether it uses Vulkan."""

    environment: str
    runner: str
    file: str
    vulkan: bool = False


PEERS = {
    "vkrt": Peer("vkrt", "run_vkrt.py", "vulkan.pte", True),
    "vkrt-c": Peer("vkrt", "run_compiled.c", "vulkan.vkx", True),
    "ncnn": Peer("ncnn", "run_ncnn.py", "model.ncnn.param", True),
    "executorch-vulkan": Peer("", "", "vulkan.pte", True),
    "onnxruntime": Peer("onnxruntime", "run_onnxruntime.py", "model.onnx"),
    "xnnpack": Peer("torch", "run_xnnpack.py", "xnnpack.pte"),
    "torch": Peer("torch", "run_torch.py", "weights.pt"),
}


def main() -> int:
    options = _options()
    try:
        result = (json.loads(options.show.read_text(encoding="utf-8")) if options.show
                  else compare(options))
    except Unavailable as error:
        print(f"bench_peers: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(result)
    print(text, end="")
    if options.write:
        head, rest = README.read_text(encoding="utf-8").split(BEGIN)
        README.write_text(head + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1],
                          encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    def names(known: Any) -> Any:
        def parse(text: str) -> list[str]:
            chosen = text.split(",")
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
            return chosen
        return parse

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names(NETWORKS), default=list(NETWORKS),
                        help=f"default: {','.join(NETWORKS)}")
    parser.add_argument("--peers", type=names(PEERS), default=list(PEERS),
                        help=f"default: {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--inferences", type=int, default=10,
                        help="timed ones of each process, after the first (default: 10)")
    parser.add_argument("--threads", type=int, default=len(_cores()),
                        help="also cores (default: all that this process may use)")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "peers",
                        help="for environments and models (default: .cache/peers)")
    parser.add_argument("--torch", metavar="PYTHON",
                        help="an interpreter that has torch and executorch (default: install them)")
    parser.add_argument("--executorch-vulkan", metavar="RUNNER",
                        help="a command; see the start of this file")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all records to this file")
    parser.add_argument("--show", type=Path, metavar="JSON", help="print the tables of such a file")
    parser.add_argument("--write", action="store_true", help="put the tables into tools/README.md")
    options = parser.parse_args()
    if min(options.rounds, options.inferences, options.threads) < 1:
        parser.error("--rounds, --inferences and --threads are at least 1")
    return options


def _cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Installs, makes and measures what is asked for; what report.py makes tables of."""
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    os.sched_setaffinity(0, _cores()[:options.threads])  # inherited by every process below
    failures: list[dict[str, str]] = []

    def failed(peer: str, model: str, error: object) -> None:
        print(f"{peer} {model}: {error}", file=sys.stderr, flush=True)
        failures.append({"peer": peer, "model": model, "why": str(error)})

    torch = environments.make("torch", folder / "environments", options.torch)
    commands: dict[str, list[str]] = {}
    for name in options.peers:
        try:
            commands[name] = _command(name, torch, folder / "environments", options)
        except Unavailable as error:
            failed(name, "", error)
    chances, records = [], []
    for model in options.models:
        try:
            made = _make_model(model, folder / "models" / model, torch, commands)
        except Unavailable as error:
            failed("every one", model, error)
            continue
        for name, command in commands.items():
            chance = Measurement(name, model, folder, command, made, options)
            try:
                chance.run(0, inferences=1)
                chances.append(chance)
            except Unavailable as error:
                failed(name, model, error)
    for index in range(1, options.rounds + 1):
        print(f"round {index} of {options.rounds}", file=sys.stderr, flush=True)
        for chance in list(chances):
            try:
                records += chance.round(index)
            except Unavailable as error:
                failed(chance.peer, chance.model, error)
                chances.remove(chance)
    return {"models": options.models, "peers": options.peers,
            "facts": {**_facts(records, options), "load": load},
            "records": records, "failures": failures}


def _command(name: str, torch: str, folder: Path, options: argparse.Namespace) -> list[str]:
    """How a peer's runner is called, without its arguments."""
    peer = PEERS[name]
    if name == "executorch-vulkan":
        if not options.executorch_vulkan:
            raise Unavailable("needs a build from source; see --executorch-vulkan")
        return shlex.split(options.executorch_vulkan)
    if name == "vkrt-c":
        return [environments.build(HERE / peer.runner, folder, environments.vkrt())]
    if peer.environment == "vkrt":
        python = environments.vkrt()
    else:
        python = torch if peer.environment == "torch" else environments.make(
            peer.environment, folder)
    return [python, str(HERE / peer.runner)]


def _make_model(model: str, folder: Path, torch: str, commands: dict[str, list[str]]
                ) -> dict[str, Any]:
    """Makes the files of a model that are not there: its shape, and file -> why it is not there."""
    stamp = folder / "made.json"
    made_of = hashlib.sha256(b"".join((HERE / file).read_bytes() for file in MAKERS))
    made_of.update(repr(environments.ENVIRONMENTS["torch"].requirements).encode())
    made: dict[str, Any] = {}
    if stamp.is_file():
        made = json.loads(stamp.read_text(encoding="utf-8"))
    if made.get("made of") != made_of.hexdigest():
        print(f"making {model}", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        out = environments.run([torch, str(HERE / "make.py"), model, str(folder)],
                               f"making {model}")
        made = {**json.loads(out.splitlines()[-1]), "made of": made_of.hexdigest()}
        (folder / PEERS["ncnn"].file).unlink(missing_ok=True)
        stamp.write_text(json.dumps(made), encoding="utf-8")
    if "vkrt-c" in commands:
        _make(made, PEERS["vkrt-c"].file,
              [environments.vkrt(), "-m", "vkrt", "compile", str(folder / PEERS["vkrt"].file)])
    if "ncnn" in commands and not (folder / PEERS["ncnn"].file).is_file():
        _make(made, PEERS["ncnn"].file, [commands["ncnn"][0], str(HERE / "make_ncnn.py"),
                                         str(folder), *map(str, made["shape"])])
    return made


def _make(made: dict[str, Any], file: str, command: list[str]) -> None:
    """Makes a file of a model, or notes why it cannot be made."""
    try:
        environments.run(command, f"making {file}")
    except Unavailable as error:
        made["failures"][file] = str(error)


@dataclass
class Measurement:
    """One peer's runs of one model."""

    peer: str
    model: str
    folder: Path
    command: list[str]
    made: dict[str, Any]
    options: argparse.Namespace

    def round(self, index: int) -> list[dict[str, Any]]:
        """The records of a round: with a warm cache of shaders and, on Vulkan, with a cold one."""
        records = [self.run(index, self.options.inferences)]
        if PEERS[self.peer].vulkan:
            records.append(self.run(index, 0, cold=True))
        return records

    def run(self, index: int, inferences: int, cold: bool = False) -> dict[str, Any]:
        """The record of one process; `Unavailable` if it fails or its result is wrong."""
        file, place = PEERS[self.peer].file, self.folder / "models" / self.model
        if file in self.made["failures"]:
            raise Unavailable(self.made["failures"][file])
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
            caches = Path(fresh) if cold else self.folder / "caches"
            output = Path(fresh) / "output.bin"
            printed = environments.run(
                [*self.command, str(place / file), str(place / "input.bin"), str(output),
                 str(inferences), str(self.options.threads), *map(str, self.made["shape"])],
                "run", env=surroundings(caches, self.options.threads), timeout=LIMIT)
            try:
                figures = json.loads(environments.last_line(printed))
            except ValueError:
                raise Unavailable("run: it printed no figures") from None
            error = relative_l2(output, place / "expected.bin")
        if not error <= MAX_ERROR:
            raise Unavailable(f"its result is wrong: relative L2 distance {error:.1e} from PyTorch")
        return {"peer": self.peer, "model": self.model, "round": index, "cold": cold,
                "error": error, **figures}


def surroundings(caches: Path, threads: int) -> dict[str, str]:
    """The variables of a measured process, whose shader caches are below a folder."""
    found = {key: value for key, value in with_caches(caches).items()
             if key not in ("PYTHONPATH", "PYTHONHOME")}
    return {**found, "LP_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}


def relative_l2(result: Path, expected: Path) -> float:
    """|result - expected| / |expected| of two files of float32; infinite if sizes differ."""
    found, right = array.array("f"), array.array("f")
    found.frombytes(result.read_bytes() if result.is_file() else b"")
    right.frombytes(expected.read_bytes())
    if len(found) != len(right):
        return math.inf
    return math.dist(found, right) / (math.hypot(*right) or 1.0)


def _facts(records: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Where, when and of what the records were made."""
    versions = {r["peer"]: r.get("version", "of unknown version") for r in records}
    devices: dict[str, list[str]] = {}
    for record in records:
        if "device" in record and record["peer"] not in devices.setdefault(record["device"], []):
            devices[record["device"]].append(record["peer"])
    return {"date": datetime.date.today().isoformat(), "processor": _processor(),
            "threads": options.threads, "rounds": options.rounds, "inferences": options.inferences,
            "versions": versions, "devices": devices}


def _processor() -> str:
    """Its name, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
