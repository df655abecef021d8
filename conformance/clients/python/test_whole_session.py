"""The official Python client goes through a whole session of turnery, over two processes."""

import asyncio
import json
import os
import tempfile
import unittest
from pathlib import Path

from story import told

CLIENTS = Path(__file__).resolve().parent.parent
SCENARIO = CLIENTS.parent / "scenarios/whole-session.json"
EXPECTED = json.loads((CLIENTS / "whole-session.json").read_text())
TURNERY = [os.environ["TURNERY"], "acp", "--model", f"scripted:{SCENARIO}"]
# Unit: seconds.
PATIENCE = 120


def tell(command):
    """What came of the story, with names for the places."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        story = told(command, f"scripted/{SCENARIO}", home)
        tale = json.dumps(asyncio.run(asyncio.wait_for(story, PATIENCE)))
        tale = tale.replace(str(home / "project"), "$PROJECT").replace(str(SCENARIO), "$SCENARIO")
        return json.loads(tale)


class WholeSession(unittest.TestCase):
    maxDiff = None

    def test_it_is_told_as_it_is_written(self):
        tale = tell(TURNERY)
        for part, expected in EXPECTED.items():
            with self.subTest(part):
                self.assertEqual(tale[part], expected)
        self.assertEqual(list(tale), list(EXPECTED))

    def test_an_agent_that_forgets_something_is_found_out(self):
        for forgotten, missed in [
            ('"sessionUpdate":"plan"', ["greeted", "edited", "loaded"]),
            ('"sessionUpdate":"user_message_chunk"', ["loaded", "forked"]),
            ('"sessionUpdate":"config_option_update"', ["edited"]),
        ]:
            with self.subTest(forgotten):
                tale = tell([str(CLIENTS / "forgetful.sh"), forgotten, *TURNERY])
                differ = [part for part in EXPECTED if tale[part] != EXPECTED[part]]
                self.assertEqual(differ, missed)


if __name__ == "__main__":
    unittest.main()
