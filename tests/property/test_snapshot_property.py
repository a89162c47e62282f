"""Generated snapshots: whatever a result holds, it is written, read and written again without a change."""

from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from snapshot_cases import small

import workbench as wb
from workbench.plan.presets import EDITION
from workbench.records import EncoderIdentity, Label, Step, Unavailable
from workbench.snapshot import archive
from workbench.snapshot.page import Room, draw
from workbench.snapshot.schema import PLANS, TABLES, About, Content, Origin, SavedSearch, columns

# Any text that UTF-8 can hold, with what YAML, JSON and HTML find hard.
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30) | st.sampled_from(
    ["", " ", "\x00", "null", "no", "1e3", "- a", "a: b", "'", '"', "\u2028", "\ufeff", "\x85", "\ud7ff", "</script>", "~", "=1"]
)  # fmt: skip
# Shrinking a whole snapshot takes minutes; the generated pieces are small as they are.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**62), 2**62)
PLACE = st.integers(0, 3)


def cells(table: str, column: str, kind: str) -> st.SearchStrategy[Any]:
    if column in ("search", "evaluation", "judgments"):
        return st.just(0)
    if column == "label":
        return st.sampled_from([str(label) for label in Label if label is not Label.ADDED])
    if column in ("place", "rank", "position"):
        values: st.SearchStrategy[Any] = PLACE
    else:
        values = {
            "S": TEXT, "I": WHOLE, "F": NUMBER, "B": st.booleans(),
            "LS": st.lists(TEXT, max_size=3), "LI": st.lists(st.integers(-5, 60), max_size=3),
        }[kind.rstrip("?")]  # fmt: skip
    return values | st.none() if kind.endswith("?") else values


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    made = {}
    for name in ("candidates", "sources", "passages", "documents"):
        row = st.tuples(*(cells(name, column, kind) for column, kind in TABLES[name].items()))
        rows = draw(st.lists(row, max_size=4))
        made[name] = pl.DataFrame(rows, schema=columns(name), orient="row")
    return made


SEARCHES = st.builds(
    SavedSearch, query=TEXT, keywords=TEXT, context=TEXT, mode=TEXT, filters=TEXT, plan=TEXT,
    settings=st.dictionaries(TEXT, TEXT | NUMBER | WHOLE | st.booleans(), max_size=4), score_kind=TEXT,
    sources=st.lists(TEXT, max_size=3, unique=True).map(tuple), approximate=st.lists(TEXT, max_size=2).map(tuple),
    unavailable=st.lists(st.builds(Unavailable, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    timings_ms=st.dictionaries(TEXT, st.floats(0, 1e6), max_size=3),
    funnel=st.lists(st.builds(Step, TEXT, TEXT, WHOLE, WHOLE, TEXT), max_size=3).map(tuple),
    messages=st.lists(TEXT, max_size=2).map(tuple), warnings=st.lists(TEXT, max_size=2).map(tuple),
    context_left_out=st.booleans(),
)  # fmt: skip
PRINCIPALS = st.none() | st.builds(wb.Principal, st.none() | TEXT, st.lists(TEXT, max_size=3).map(tuple))
ENCODERS = st.lists(st.builds(EncoderIdentity, TEXT, TEXT, TEXT, WHOLE, WHOLE), max_size=2).map(tuple)
ABOUTS = st.builds(
    About, created=TEXT, by=TEXT, note=TEXT, principal=PRINCIPALS,
    origin=st.builds(Origin, TEXT, TEXT, WHOLE, WHOLE, ENCODERS),
    packages=st.dictionaries(TEXT, TEXT, max_size=3).map(lambda named: {**named, PLANS: str(EDITION)}),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=20, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(about=ABOUTS, search=SEARCHES, frames=tables())
def test_write_read_write_changes_nothing(about: About, search: SavedSearch, frames: dict[str, pl.DataFrame]) -> None:
    content = Content((search,), (), (), frames)
    made = small(about, content)
    data = made.to_bytes()
    again = wb.Snapshot.load(data)
    assert again.about == about
    assert again.searches == (search,)
    for name, frame in frames.items():
        assert again.content.table(name).equals(frame)
    assert again.to_bytes() == data
    assert archive.write_parts(again.content) == archive.write_parts(content)


@pytest.mark.slow
@settings(deadline=None, max_examples=12, phases=QUICK, suppress_health_check=[HealthCheck.too_slow])
@given(about=ABOUTS, search=SEARCHES, frames=tables())
def test_any_content_has_a_page_and_a_diff(about: About, search: SavedSearch, frames: dict[str, pl.DataFrame]) -> None:
    content = Content((search,), (), (), frames)
    text = draw(about, content, Room(200, 40))
    assert text.endswith("</html>\n")
    assert "\x00" not in text
    made = small(about, content)
    assert made.diff(made).settings().is_empty()
    assert made.diff(made).documents().is_empty()
