"""Trained networks on real data: the decisions they are made for, not only their numbers."""

import numpy as np
import pytest
from support import need_model

import vkrt

pytestmark = pytest.mark.driver


def load_with_data(name, data, device):
    """The program and its data, or a skip where VKRT_MODELS does not have them."""
    return vkrt.load(need_model(f"{name}.pte"), device), np.load(need_model(data))


def test_digits(device):
    program, data = load_with_data("digit-recognizer", "digit-recognizer.dataset_100.npz", device)
    with program:
        logits = np.concatenate([program.run(x[None])[0] for x in data["x"]])
    np.testing.assert_array_equal(logits.argmax(1), data["logits"].argmax(1))
    np.testing.assert_allclose(logits, data["logits"], rtol=1e-3, atol=1e-4)


def test_photos(device):
    program, data = load_with_data("efficientnet-lite0", "efficientnet-lite0.images.npz", device)
    with program:
        logits = np.concatenate([program.run(x[None])[0] for x in data["x"]])
    np.testing.assert_array_equal(logits.argmax(1), data["logits"].argmax(1))
    for result, expected in zip(logits, data["logits"]):
        assert np.linalg.norm(result - expected) < 1e-5 * np.linalg.norm(expected)


def test_speech(device):
    """The state of the network goes from one chunk to the next through the host."""
    program, data = load_with_data("silero-vad", "silero-vad.stream.npz", device)
    state = [np.zeros((1, 128), np.float32), np.zeros((1, 128), np.float32)]
    probabilities = []
    with program:
        for chunk in data["x"]:
            probability, *state = program.run(chunk[None], *state)
            probabilities.append(float(probability[0, 0]))
    np.testing.assert_array_equal(np.array(probabilities) > 0.5, data["prob"] > 0.5)
    np.testing.assert_allclose(probabilities, data["prob"], atol=1e-4)
