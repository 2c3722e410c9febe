"""The service's side of a run: asks its public and its admin listener, as any operator's tool would."""
import http.client
import json


class Service:
    """A service at `api` and `admin` (HOST:PORT), with a key for each."""

    def __init__(self, api, admin, key, admin_key):
        self.api, self.admin, self.key, self.admin_key = api, admin, key, admin_key

    def call(self, address, key, path, body=None, patience=60):
        """Returns status and text; raises OSError or HTTPException."""
        connection = http.client.HTTPConnection(address, timeout=patience)
        try:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            connection.request("GET" if body is None else "POST", path,
                               None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        finally:
            connection.close()

    def status(self):
        code, text = self.call(self.admin, self.admin_key, "/admin/status")
        if code != 200:
            raise OSError(f"/admin/status: {code} {text}")
        return json.loads(text)

    def metrics(self):
        return self.call(self.admin, self.admin_key, "/metrics")[1]

    def ready(self):
        code, text = self.call(self.api, self.key, "/ready")
        return code, json.loads(text).get("status", "")

    def injure(self, action, target, duration_ms=0):
        """What the service does to itself; returns the status."""
        body = {"action": action, "target": target}
        if duration_ms:
            body["duration_ms"] = duration_ms
        return self.call(self.admin, self.admin_key, "/admin/chaos", body)

    def pools(self):
        """Pool -> the newest change of its size."""
        code, text = self.call(self.admin, self.admin_key, "/admin/pools")
        if code != 200:
            raise OSError(f"/admin/pools: {code} {text}")
        return {x["pool"]: x for x in json.loads(text)["pools"]}

    def scale(self, pool, members):
        return self.call(self.admin, self.admin_key, "/admin/scale", {"pool": pool, "members": members})

    def reload(self):
        return self.call(self.admin, self.admin_key, "/admin/reload", {})

    def drain(self, worker):
        return self.call(self.admin, self.admin_key, "/admin/drain-worker", {"worker": worker})

    def probe(self, model, patience=60):
        """One token; returns the status."""
        body = {"model": model, "prompt": "a", "max_tokens": 1, "temperature": 0, "ignore_eos": True}
        return self.call(self.api, self.key, "/v1/completions", body, patience)[0]


def sum_of(page, name, label=""):
    """The sum of a metric's series, or of those with that label text."""
    total = 0.0
    for line in page.splitlines():
        if line.startswith((name + "{", name + " ")) and label in line:
            total += float(line.split()[-1])
    return total
