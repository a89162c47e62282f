"""What a run says where its corpus cannot be written: a full disk is one thing, a forbidden one another."""

from __future__ import annotations

import errno
import os

import pytest

from workbench.errors import CorpusError
from workbench.indexing.run import disk_errors


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_folder_that_may_not_be_written_is_not_said_to_be_full(code: int) -> None:
    with pytest.raises(CorpusError) as caught, disk_errors():
        raise OSError(code, os.strerror(code), "my.corpus/writer.lock")
    assert caught.value.message == f"The corpus cannot be written: {os.strerror(code).lower()} at my.corpus/writer.lock"
    assert "right to write" in caught.value.remedy
    assert "disk space" not in caught.value.remedy


def test_a_full_disk_is_said_to_be_full() -> None:
    with pytest.raises(CorpusError, match="No space left on device") as caught, disk_errors():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "Free disk space" in caught.value.remedy
