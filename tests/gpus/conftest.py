"""Says which devices a run of these tests takes."""

from gpu_drivers import FOLDER, TURN, taken


def pytest_report_header():
    if FOLDER:
        return f"GPUs (VKRT_TEST_GPU_TURN={TURN}): {', '.join(taken())}"
    return None
