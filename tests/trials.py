"""How many drawn cases a property is tried on: few in every run, and with `TRIALS=20` twenty times as many."""

import os

from hypothesis import settings

TRIALS = int(os.environ.get("TRIALS", "1"))


def trials(few: int) -> settings:
    return settings(max_examples=few * TRIALS)
