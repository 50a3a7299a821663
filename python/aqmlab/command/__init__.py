"""The `aqmlab` command: its verbs, and what they show on a terminal."""
