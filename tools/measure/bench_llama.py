#!/usr/bin/env python3
"""A language model here and in llama.cpp, side by side: rates, CPU time and memory.

    bench_llama.py MODEL.pte --llama-bench PATH [--gguf FILE] [--prompt 16] [--tokens 4]
        [--rounds 3] [--threads 2] [--json]

MODEL.pte is SmolLM2-135M with 4-bit weights (tools/export/checkpoint.py). llama.cpp gets a model
of the same sizes with random weights in Q4_0, which this makes where FILE is not there yet (with
the package `gguf`), and runs twice: on the CPU, and with its Vulkan backend on the device that
vkrt uses too (`VK_DRIVER_FILES` leaves one). What is generated is no text, and takes as long.

llama-bench is in no package. From the source distribution of llama-cpp-python, in vendor/llama.cpp:

    cmake -B build -DGGML_VULKAN=ON -DLLAMA_CURL=OFF && cmake --build build --target llama-bench

with Debian's spirv-headers, glslc and libvulkan-dev. Where Vulkan's headers are older than the
source, what ggml-vulkan.cpp does with vk::LayerSettingEXT has to be taken out.

Each round runs the three in turn, each in a process of its own: it loads the model, and reads a
prompt and writes tokens, unmeasured at first. Rates are tokens per second by the clock, after
that; CPU seconds and the high-water mark (VmHWM, pages of the mapped file included) are those of
the whole process. All figures are the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fresh

# SmolLM2-135M
LAYERS, WIDTH, INNER, HEADS, KEY_HEADS, WORDS, CONTEXT = 30, 576, 1536, 9, 3, 49152, 8192
# What is compared, and in which order the table has it
WHO = ("vkrt", "llama.cpp, Vulkan", "llama.cpp, CPU")
RATES = ("prefill", "decode")


def write_gguf(path: str) -> None:
    """A model of SmolLM2-135M's sizes: random numbers, Q4_0, no words."""
    import gguf
    import numpy as np

    kind = gguf.GGMLQuantizationType.Q4_0
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in (
            ("context_length", CONTEXT), ("embedding_length", WIDTH), ("block_count", LAYERS),
            ("feed_forward_length", INNER), ("head_count", HEADS), ("head_count_kv", KEY_HEADS),
            ("rope_freq_base", 100000.0), ("layer_norm_rms_eps", 1e-5), ("vocab_size", WORDS),
            ("file_type", gguf.LlamaFileType.MOSTLY_Q4_0), ("tokenizer_model", "no_vocab")):
        getattr(writer, f"add_{name}")(value)

    def matrix(name: str, rows: int, columns: int) -> None:
        numbers = random.standard_normal((rows, columns), np.float32) / columns ** 0.5
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(numbers, kind), raw_dtype=kind)

    def ones(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))

    matrix("token_embd", WORDS, WIDTH)
    ones("output_norm")
    narrow = WIDTH * KEY_HEADS // HEADS
    for layer in range(LAYERS):
        ones(f"blk.{layer}.attn_norm")
        ones(f"blk.{layer}.ffn_norm")
        for name, rows, columns in (
                ("attn_q", WIDTH, WIDTH), ("attn_k", narrow, WIDTH), ("attn_v", narrow, WIDTH),
                ("attn_output", WIDTH, WIDTH), ("ffn_gate", INNER, WIDTH),
                ("ffn_up", INNER, WIDTH), ("ffn_down", WIDTH, INNER)):
            matrix(f"blk.{layer}.{name}", rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run_vkrt(model: str, prompt: int, tokens: int) -> dict[str, float]:
    """The rates of vkrt, in this process."""
    import vkrt

    def text() -> tuple[float, float]:
        """Seconds of the prompt, with the first token, and of the other tokens."""
        # Any tokens take as long, and none is an end.
        steps = vkrt.generate(program, range(1, prompt + 1), max_tokens=tokens + 1, ends=())
        times = [time.perf_counter()]
        times += [time.perf_counter() for _ in steps]
        return times[1] - times[0], times[-1] - times[1]

    with vkrt.load(model) as program:
        text()
        first, rest = text()
    return {"prefill": prompt / first, "decode": tokens / rest}


def measured(command: list[str]) -> tuple[str, float, float]:
    """What a process prints, its CPU seconds, and its high-water mark in MB."""
    environment = {**os.environ, "GGML_VK_VISIBLE_DEVICES": "0"}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=out, stderr=said, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}: {process.returncode}\n{said.read()}")
        return out.read(), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def once(who: str, options: argparse.Namespace) -> dict[str, float]:
    """One process: tokens per second of the prompt and of steps, CPU seconds, MB."""
    if who == "vkrt":
        command = fresh.command(run_vkrt, options.model, options.prompt, options.tokens)
    else:
        device = ["-dev", "none", "-ngl", "0"] if who.endswith("CPU") else ["-dev", "Vulkan0"]
        command = [options.llama_bench, "-m", options.gguf, "-p", str(options.prompt), "-n",
                   str(options.tokens), "-r", "1", "-t", str(options.threads), "-o", "json",
                   *device]
    text, seconds, peak = measured(command)
    rates = json.loads(text)
    if who != "vkrt":  # one record for the prompt, and one for the steps
        rates = {"decode" if record["n_gen"] else "prefill": record["avg_ts"] for record in rates}
    return {**rates, "seconds": seconds, "peak": peak}


def table(figures: dict[str, dict[str, float]], options: argparse.Namespace) -> str:
    """In Markdown, with the ratio to vkrt in brackets."""
    base = figures[WHO[0]]
    lines = [f"| | prompt of {options.prompt}, tokens/s | steps, tokens/s | CPU s | peak MB |",
             "| --- | --- | --- | --- | --- |"]
    for who, found in figures.items():
        cells = [f"{found[name]:.1f} ({found[name] / base[name]:.2f})"
                 for name in (*RATES, "seconds", "peak")]
        lines.append(f"| {who} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llama-bench", metavar="PATH")
    parser.add_argument("--gguf", metavar="FILE", default="smollm2-135m-sizes-q4_0.gguf")
    for name, default in (("prompt", 16), ("tokens", 4), ("rounds", 3), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args()
    if not options.llama_bench:
        parser.error("--llama-bench is needed: where is it?")
    if options.rounds < 1:
        parser.error("at least 1 round")
    if not Path(options.gguf).exists():
        # In a process of its own: what this one holds would count for those that it starts.
        fresh.measure(write_gguf, options.gguf)
    found: dict[str, list[dict[str, float]]] = {who: [] for who in WHO}
    for number in range(options.rounds):
        for who, rounds in found.items():
            rounds.append(once(who, options))
            print(f"round {number}, {who}: " + ", ".join(
                f"{name} {value:.2f}" for name, value in rounds[-1].items()),
                file=sys.stderr, flush=True)
    best = {who: {name: (max if name in RATES else min)(one[name] for one in rounds)
                  for name in rounds[0]} for who, rounds in found.items()}
    print(json.dumps(found) if options.json else table(best, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
