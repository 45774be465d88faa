"""A page in a headless Chromium, by its DevTools protocol over pipes."""

import json
import os
import subprocess

from support import need_command

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Page:
    """An open page, and a folder for the browser's own files; its end ends the browser."""

    def __init__(self, url, folder):
        command = need_command(*NAMES)
        self._read, answers = os.pipe()
        commands, self._write = os.pipe()
        # It reads commands from file descriptor 3 and writes answers to 4, each with a zero behind.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", command, "--headless",
             "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._received = b""
        self._number = 0
        target = self._call("Target.createTarget", url=url)["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)
        os.close(self._write)

    def _call(self, method, session=None, **parameters):
        """The result of a command of the protocol."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._received:
                part = os.read(self._read, 1 << 16)
                assert part, "the browser has ended"
                self._received += part
            message, _, self._received = self._received.partition(b"\0")
            answer = json.loads(message)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script):
        """The value of an expression in the page."""
        answer = self._call("Runtime.evaluate", self._session, expression=script,
                            returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def type(self, text):
        """Types a text into what has the focus."""
        self._call("Input.insertText", self._session, text=text)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", self._session, type=kind, key=key, code=key,
                       text="\r" if key == "Enter" and kind == "keyDown" else "",
                       windowsVirtualKeyCode=13)
