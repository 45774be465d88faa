"""Runs a program with vkrt; see timing.py."""

import timing

import vkrt

FACTS = {"version": vkrt.__version__}


def load(path, threads):
    before = timing.memory("VmRSS")
    device = vkrt.Device.open()
    if before is not None:
        FACTS["driver_memory"] = timing.memory("VmRSS") - before
    FACTS["device"] = device.info.name
    program = vkrt.load(path, device=device)
    return lambda x: program.run(x)[0]


timing.measure(load, FACTS)
