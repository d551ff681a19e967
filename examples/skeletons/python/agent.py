"""The agent: Hearth starts this program once for each new row. The JSON that it prints is the row's result; with another
exit code than 0 the row has failed, and what stands on standard error is the reason."""
import json
import os
import sys

from words import count


def activity():
    path = os.environ.get("ACTIVITY_FILE")  # set when the row is large
    if path:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return json.loads(os.environ["ACTIVITY_DATA"])


try:
    print(json.dumps(count(activity()["raw_data"])))
except ValueError as error:
    sys.exit(str(error))
