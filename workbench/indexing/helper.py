"""A helper process of an indexing run: reads and cuts files that it is told over its standard input.

Protocol: a `Cutting`, then `Task`s; each is answered on standard output by batches and an `Outcome`, or by the error that
ends the run (the tokenizer cannot be loaded). The end of the input ends the process. Standard output is kept for the
protocol: whatever a library prints goes to standard error.
"""

from __future__ import annotations

import os
import sys

from workbench.errors import WorkbenchError
from workbench.indexing.reading import Cutting, make_counter, read_task, receive, send
from workbench.ingest.tokens import TokenCounter


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    questions = sys.stdin.buffer
    try:
        cutting: Cutting = receive(questions)
        counter: TokenCounter | None = None
        while True:
            task = receive(questions)
            try:
                counter = counter or make_counter(cutting.encoder)
                for item in read_task(task, cutting, counter):
                    send(answers, item)
            except WorkbenchError as exc:
                send(answers, exc)
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
