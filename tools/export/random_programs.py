"""The command line of tools that export random programs by their numbers."""

import argparse
import logging
import signal
import warnings
from pathlib import Path

import torch

SECONDS = 90  # of CPU time that a program may take


def export_numbers(what, make, count):
    """Makes the programs of the numbers that the command line says.

    Args:
        what: the tool's description.
        make: writes the files of a number to a folder; an exception is a line on the output.
        count: of the numbers, if the command line does not say it.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("folder", type=Path, help="folder for the files")
    parser.add_argument("--first", type=int, default=0, help="the first number (default: 0)")
    parser.add_argument("--count", type=int, default=count, help=f"default: {count}")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGPROF, _stop)
    torch.set_num_threads(1)
    refused = 0
    for number in range(options.first, options.first + options.count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            make(number, options.folder)
        except Exception as error:  # whatever an exporter raises
            refused += 1
            line, *_ = str(error).strip().splitlines() or [""]
            print(f"{number}: {type(error).__name__}: {line}"[:300], flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"{options.count - refused} of {options.count} programs exported")


def _stop(*_):
    raise TimeoutError(f"no end after {SECONDS} s")
