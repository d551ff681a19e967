"""With a running Hearth on which my-app is registered: a row is inserted and its result comes back. Skipped, with the
reason, when there is none. HEARTH names the program, HEARTH_DATA its data folder."""
import json
import os
import subprocess
import time
import unittest
import urllib.error
import urllib.request


def ask(*args):
    try:
        ended = subprocess.run([os.environ.get("HEARTH", "hearth"), *args, "--json"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise unittest.SkipTest((getattr(error, "stderr", "") or str(error)).strip()) from error
    return json.loads(ended.stdout)


class Whole(unittest.TestCase):
    def setUp(self):
        self.url = ask("status")["url"]
        self.app_id = ask("app", "show", "my-app")["app"]["app_id"]

    def send(self, method, path, body=None):
        headers = {"x-app-id": self.app_id, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers, method=method), timeout=60) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            self.fail(f"{error.read().decode()}: hearth permission grant my-app --requested")

    def test_a_row_gets_its_result(self):
        row = self.send("POST", "/activities", {"raw_data": {"text": "a whole sentence"}})
        end = time.monotonic() + 60
        while row["status"] not in ("completed", "failed") and time.monotonic() < end:
            time.sleep(0.1)
            row = self.send("GET", f"/activities/{row['id']}")
        self.assertIsNone(row["error_message"])
        self.assertEqual(row["result"], {"words": 3, "longest": "sentence"})
