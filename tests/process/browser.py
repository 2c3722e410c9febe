"""A headless Chromium, driven by the DevTools protocol over two pipes: no port, no package."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

PATIENCE = int(os.environ.get("BROWSER_PATIENCE", "120"))  # seconds; machines that run tests stand still for some


def find_chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One browser with one page."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]

        def give():
            for end, name in zip(ends, (3, 4)):
                os.dup2(end, name)

        words = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run",
                 "--no-proxy-server", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--disable-background-networking", "--disable-component-update", "--disable-extensions"]
        if os.geteuid() == 0:
            words.append("--no-sandbox")
        self.process = subprocess.Popen(words, preexec_fn=give, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (to_browser, from_browser, *ends):
            os.close(fd)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.wrong = []  # exceptions, errors of the console and the log
        self.asked = []  # URLs
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.wrong.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.wrong.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.wrong.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def _read(self, until):
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.inp, 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            reply = self._read(until)
            if reply.get("id") != self.number:
                self._note(reply)
            elif "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']['message']}")
            else:
                return reply["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """What JavaScript makes of it; promises are waited for."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait(self, expression, patience=PATIENCE):
        """Until it is true; returns it."""
        until = time.monotonic() + patience
        while True:
            found = self.value(expression)
            if found:
                return found
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.05)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """light or dark; nothing moves meanwhile."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def press(self, key, text=""):
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39}
        shared = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def hover(self, selector):
        at = self.value(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                        " return [r.left + r.width / 2, r.top + r.height / 2]; })()")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])

    def picture(self, file, whole=False, kind="png"):
        reply = self.call("Page.captureScreenshot", format=kind, captureBeyondViewport=whole)
        with open(file, "wb") as out:
            out.write(base64.b64decode(reply["data"]))

    def end(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (RuntimeError, TimeoutError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
