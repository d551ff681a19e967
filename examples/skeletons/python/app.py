"""The app: inserts one row, waits for the agent's result, prints it and ends. `hearth app start my-app` runs it,
`hearth app logs my-app` shows what it printed."""
import json
import os
import sys
import time
import urllib.error
import urllib.request

# Hearth sets them: who this app is, the secret that proves it, and where the service is.
HEADERS = {
    "content-type": "application/json",
    "x-app-id": os.environ["SVC_APP_ID"],
    "x-app-secret": os.environ["SVC_APP_SECRET"],
}
SERVER_URL = os.environ["SERVER_URL"]


def hearth(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER_URL + path, data, HEADERS, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        answer = json.load(error)
        # A missing permission: `hearth permission grant my-app --requested`.
        sys.exit(f"{method} {path}: {error.code} {answer.get('message') or answer.get('error')}")


permissions = ["activities.read", "activities.write"]
print("asks for", ", ".join(permissions))  # and waits for you, when you have not granted them
hearth("POST", "/sdk/register", {"app_id": HEADERS["x-app-id"], "app_name": "my-app", "permissions": permissions})
row = hearth("POST", "/activities", {"raw_data": {"text": "The app itself says hello"}})["data"]
print("inserted", row["id"])
while row["status"] not in ("completed", "failed"):
    time.sleep(0.2)
    row = hearth("GET", f"/activities/{row['id']}")["data"]
print(f"{row['status']}: {row['error_message'] or json.dumps(row['result'])}")
