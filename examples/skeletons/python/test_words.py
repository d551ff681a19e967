"""Without Hearth: the work, and the agent as Hearth starts it."""
import json
import os
import subprocess
import sys
import unittest

from words import count

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py")


def agent(activity):
    return subprocess.run([sys.executable, AGENT], env={**os.environ, "ACTIVITY_DATA": json.dumps(activity)},
                          capture_output=True, text=True, check=False)


class Words(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(count({"text": " A small\n example "}), {"words": 3, "longest": "example"})
        self.assertEqual(count({"text": ""}), {"words": 0, "longest": ""})
        with self.assertRaisesRegex(ValueError, "must be a string"):
            count({"text": 7})

    def test_the_agent_prints_the_result(self):
        self.assertEqual(json.loads(agent({"raw_data": {"text": "two words"}}).stdout), {"words": 2, "longest": "words"})

    def test_the_agent_fails_with_a_reason(self):
        ended = agent({"raw_data": {}})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("must be a string", ended.stderr)
