"""Settings: a value is what was written, or one sentence says why not."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import settings
from workbench.errors import SettingError
from workbench.markup import cell, cell_text, csv_of

NUMBERS = [s for s in settings.SETTINGS if s.kind in (int, float)]


@pytest.fixture
def in_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "settings.yaml"
    monkeypatch.setenv("WORKBENCH_SETTINGS", str(file))
    return file


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.name)
def test_bounds_are_included_and_nothing_beyond_them(
    setting: settings.Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setting.low is not None
    assert setting.high is not None
    for good in (setting.low, setting.high):
        monkeypatch.setenv(setting.variable, str(setting.kind(good)))
        assert settings.get(setting.name) == good
    for bad in (str(setting.low - 1), str(setting.high + 1), "nan", "inf", "-inf", "1e999", "many", ""):
        monkeypatch.setenv(setting.variable, bad)
        with pytest.raises(SettingError, match=setting.variable):
            settings.get(setting.name)


@pytest.mark.parametrize(
    "line",
    [
        "threads: 2.7",
        "threads: true",
        "threads: .inf",
        "threads: .nan",
        "threads: [2]",
        "vector_score_threshold: .nan",
        "vector_score_threshold: true",
        "vector_score_threshold: 1" + "0" * 400,
        "roles: [admin, support]",
        "tenant: {name: acme}",
        "app_indexing: 2",
    ],
)
def test_a_value_is_never_bent_to_fit(line: str, in_file: Path) -> None:
    in_file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(SettingError, match=line.partition(":")[0]):
        settings.get(line.partition(":")[0])


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda s: s.name)
def test_a_name_with_nothing_behind_it_is_not_set(
    setting: settings.Setting, in_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(setting.variable, raising=False)
    in_file.write_text(f"{setting.name}:\n", encoding="utf-8")
    assert settings.get(setting.name) == setting.default


def test_whole_numbers_and_plain_words_are_read(in_file: Path) -> None:
    """YAML's own types where they say the same: 2.0 is two threads, a tenant may be a number."""
    in_file.write_text("threads: 2.0\ntenant: 5\napp_indexing: off\noidc_hours: 1\n", encoding="utf-8")
    assert [settings.get(n) for n in ("threads", "tenant", "app_indexing", "oidc_hours")] == [2, "5", False, 1.0]


@pytest.mark.parametrize(
    "data", ["corpus: caf\u00e9\n".encode("latin-1"), b"\xff\xfec\x00", b"[" * 5000, b"a: !!timestamp 2026-99-99"]
)
def test_a_file_that_cannot_be_read_as_settings_is_a_sentence(data: bytes, in_file: Path) -> None:
    in_file.write_bytes(data)
    with pytest.raises(SettingError, match=r"is not UTF-8|cannot be read"):
        settings.get("corpus")


TEXTS = st.text(st.sampled_from("'=+-@\t\r\n＝a1,\"") | st.characters(codec="utf-8"), max_size=8)


@given(TEXTS)
def test_a_cell_is_no_formula_and_reads_back(text: str) -> None:
    assert cell(text)[:1] not in tuple("=+-@\t\r\n＝＋－＠")
    assert cell_text(cell(text)) == text


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_table_as_csv_holds_cells(texts: list[str]) -> None:
    rows = list(csv.reader(io.StringIO(csv_of(pl.DataFrame({"=a": texts, "n": [-1.5] * len(texts)})), newline="")))
    assert rows == [["'=a", "n"], *([cell(text), "-1.5"] for text in texts)]
