"""A device that is lost, at any submission: clear errors, nothing left, and a new one works."""

import json

import pytest
from hostile_device import environment_of
from support import run_python

# Kernels on the host, staged weights, a state; weights that a thread uploads, by both ways
PROGRAMS = [("places", {}, "intel"), ("conv_mix", {"weights": "copy"}, "minimum"),
            ("buffers", {}, "mali"), ("unet_small", {"weights": "stream"}, "intel"),
            ("unet_small", {"weights": "stream"}, "amd")]
CASES = [(*program, late) for program in PROGRAMS for late in ("0", "1")]


# Not marked `driver`: it is the layer that loses the device.
@pytest.mark.parametrize(("name", "options", "profile", "late"), CASES)
def test_lost_at_any_submission(name, options, profile, late, monkeypatch, tmp_path):
    """With `late` the submission succeeds, and the wait for it fails. Of the programs, which are
    loaded anew for each submission, plans are made once."""
    monkeypatch.delenv("VKRT_VALIDATION", raising=False)
    printed = run_python("""
        import sys
        from hostile.losses import lose_everywhere
        from support import sorting_on_host
        with sorting_on_host():
            lose_everywhere(*sys.argv[1:])
        """, name, json.dumps(options), late, **environment_of(profile),
        VKRT_PLAN_CACHE=str(tmp_path))
    result = json.loads(printed.splitlines()[-1])
    assert result["losses"] >= 4
    assert result["faults"] == []
