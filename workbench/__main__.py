"""`python -m workbench` is `workbench`: for where the environment's programs are not on the path."""

from __future__ import annotations

from workbench.cli.main import main

if __name__ == "__main__":
    main(prog_name="workbench")
