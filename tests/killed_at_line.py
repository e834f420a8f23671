"""Runs ``lcc-push`` and kills it (SIGKILL) at the N-th line that some of its modules execute.

``python killed_at_line.py N MODULE,… WORDS…``; with N = 0 it writes the number of these lines to stderr.
"""

import os
import signal
import sys

count, at = 0, int(sys.argv[1])
modules = tuple(f"/push/{name}.py" for name in sys.argv[2].split(","))


def traced(frame, event, _arg):
    global count  # noqa: PLW0603
    if not frame.f_code.co_filename.endswith(modules):
        return None
    if event == "line":
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return traced


from lcc_scrapy.push.lcc_push import main  # noqa: E402

if sys.argv[3] == "init":
    import lcc_scrapy.push.init  # noqa: F401
sys.settrace(traced)
status = main(sys.argv[3:])
sys.settrace(None)
if not at:
    sys.stderr.write(f"lines {count}\n")
sys.exit(status)
