"""Puts the project's own data into the package when it is built; everything else is in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class BuildWithData(build_py):
    """`data/` becomes `workbench/_data`; a development install reads `data/` where it lies."""

    def run(self) -> None:
        """Build, then copy the data."""
        super().run()
        if not self.editable_mode:
            shutil.copytree(HERE / "data", self._data(), dirs_exist_ok=True)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The built files and the data's."""
        files = super().get_outputs(include_bytecode)
        if self.editable_mode:
            return files
        data = HERE / "data"
        return [*files, *(str(self._data() / p.relative_to(data)) for p in sorted(data.rglob("*")) if p.is_file())]

    def _data(self) -> Path:
        return Path(self.build_lib) / "workbench" / "_data"


setup(cmdclass={"build_py": BuildWithData})
