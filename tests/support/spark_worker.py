"""The process in which Spark lives: `python -m … MASTER CONF`, which is JSON.

Jobs come in, answers go out; whatever else anybody prints goes to standard error.
"""

import json
import os
import pickle
import sys

from odradek.pipeline.session import make_session


def main() -> None:
    """Do jobs until the input ends."""
    master, conf = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    session = make_session(master, "odradek-tests", json.loads(conf))
    while True:
        try:
            job, arguments, options = pickle.load(sys.stdin.buffer)  # our parent's
        except EOFError:
            break
        try:
            answer: tuple[str | None, object] = (None, job(session, *arguments, **options))
        except Exception as error:  # noqa: BLE001  # the test decides what it means
            answer = (f"{type(error).__name__}: {error}", None)
        pickle.dump(answer, answers)
        answers.flush()
    session.stop()


if __name__ == "__main__":
    main()
