"""On PYTHONPATH, beside the root of this project: makes a process careless. See ``careless.py``."""

import os

from tests.faults.powercut.careless import apply

apply(os.environ["CARELESS"])
