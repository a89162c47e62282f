"""A plan is a value whose text parses back; a setting is what was written, or one sentence says why not."""

import csv
import io
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import settings
from workbench.cli.options import changed
from workbench.errors import PlanError, SettingError
from workbench.evaluate.grid import read_space
from workbench.markup import cell, cell_text, csv_of
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan, preset, recorded_text, without_effect
from workbench.plan.presets import BY_NAME, EDITION


def test_default_is_tmm_adapted_with_feedback_and_files_say_their_edition():
    adapted = "tmm vector.adapt=corpus vector.hubness=0.3 feedback.weight=0.2"
    assert preset("default") == Plan.parse("") == Plan.parse(adapted)
    assert preset("default")["fusion.method"] == "convex"
    assert Plan() == preset("rrf")
    assert (str(Plan()), str(Plan({"limit": 5}))) == ("rrf", "rrf limit=5")
    assert [name for name, _ in preset("rrf")] == []
    assert Plan.from_yaml("preset: default\nedition: 1\nfields:\n  fusion.k: 5\n") == Plan.parse("rrf fusion.k=5")
    assert Plan.from_yaml("fields: {limit: 5}") == Plan.parse("default limit=5")
    assert f"edition: {EDITION}" in preset("tmm").to_yaml()
    for wrong in ("0", str(EDITION + 1), "one"):
        with pytest.raises(PlanError, match=f"edition '?{wrong}'?. This version reads 1 to"):
            Plan.from_yaml(f"preset: tmm\nedition: {wrong}\n")
    plan = Plan.parse("rrf").replace({"collections": ["docs,parts", " notes"]})
    assert plan == Plan.parse(str(plan)) == Plan.from_yaml(plan.to_yaml())
    assert plan["collections"] == ("docs", "notes", "parts")
    with pytest.raises(PlanError):
        plan.replace({"sources": ["keyword", "vector:a,b"]})
    source = "vector:/models/a=b"
    space = read_space(Plan.parse(f"rrf 'sources=keyword,{source}'"), [f"fusion.weights.{source}=0,1"])
    assert space.fields == (f"fusion.weights.{source}",)


OLD = {
    "default": "rrf",
    "limit=5": "rrf limit=5",
    "default fusion.k=5": "rrf fusion.k=5",
    "tmm": "tmm grep.when=never",
    "tmm fusion.method=weighted": "tmm fusion.method=weighted fusion.normalise.grep=minmax",
    "default fusion.method=convex fusion.weights.vector=2": "rrf grep.when=never fusion.method=convex",
    "default sources=vector,vector:b fusion.method=max fusion.normalise.vector=top":
        "rrf sources=vector,vector:b fusion.method=max fusion.normalise.vector=top fusion.normalise.vector:b=minmax",
    "passages limit=3": "passages limit=3",
    "what is this": "what is this",
}  # fmt: skip


@pytest.mark.parametrize("text", OLD)
def test_a_plan_that_was_recorded_earlier_stays_what_it_was(text):
    """Edition 1: `default` meant rrf, grep never joined convex, which read no weights. A second reading changes nothing."""
    assert recorded_text(text, 1) == OLD[text]
    assert recorded_text(OLD[text], EDITION) == OLD[text]
    assert recorded_text(OLD[text], 1) == OLD[text]


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("contract", "contract dedupe=yes"),
        ("scoped dedupe=no", "scoped"),
        ("pages limit=3", "pages limit=3 rewrite.model=off"),
        ("default", "tmm"),
    ],
)
def test_edition_2_removed_equal_texts_and_did_not_rewrite(text, now):
    assert Plan.parse(recorded_text(text, 2)) == Plan.parse(now)


def test_edition_3_neither_adapted_nor_had_feedback():
    assert Plan.parse(recorded_text("default limit=3", 3)) == Plan.parse("tmm limit=3")
    assert recorded_text("contract", 3) == "contract"
    assert Plan.parse(recorded_text("default vector.adapt=corpus", 3)) == Plan.parse("tmm vector.adapt=corpus")


SYSTEMS = ("passages", "collections", "pages", "contract", "scoped")


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_systems_presets_build_on_the_field_defaults_alone(name):
    said = {plan_fields.locate(field)[0].name for field in BY_NAME[name].values} | {"fusion.k", "limit.max", "limit"}
    for field, _ in preset(name):
        assert plan_fields.locate(field)[0].name in said, field


@pytest.mark.parametrize(
    ("plan", "name", "said"),
    [
        ("default", "fusion.k", "fusion.k has no effect with fusion.method convex; add fusion.method=rrf"),
        ("rrf", "fusion.alpha", "fusion.alpha has no effect with fusion.method rrf; add fusion.method=convex"),
        ("rrf", "fusion.normalise", "with fusion.method rrf, which reads ranks and no scores"),
        ("rrf", "fusion.normalise.vector", "add fusion.method=convex or weighted"),
        ("default", "fusion.prefer", "with fusion.unit chunk; add fusion.unit=document"),
        ("default", "rerank.top", "with rerank.model off"),
        ("default sources=vector", "keyword.b", "without keyword among the sources; add sources=keyword,vector"),
        ("default", "fusion.weights.vector:b", "without vector:b among the sources; add sources=keyword,vector,vec"),
        ("default grep.when=never", "fusion.weights.grep", "with grep.when never; add grep.when=auto"),
        ("default grep.when=never", "grep.context", "with grep.when never; add grep.when=auto"),
        ("default", "depth.grep@memory", "among the sources; add sources=grep@memory,keyword,vector"),
        ("default", "threshold.vector:b", "without vector:b among the sources; add sources=keyword,vector,vector:b"),
        ("default sources=keyword", "threshold", "without vector among the sources; add sources=keyword,vector"),
        ("default sources=vector", "threshold.keyword", "without keyword among the sources; add sources=keyword,"),
        (
            "default sources=vector grep.when=never",
            "fusion.threshold",
            "with vector alone, which is passed through; add fusion.single_source=fuse",
        ),
        (
            "default sources=vector,vector:b threshold.vector=0.4 threshold.vector:b=off",
            "vector.threshold",
            "beside threshold.vector and threshold.vector:b; add threshold.vector=auto",
        ),
    ],
)
def test_a_field_that_does_nothing_says_so_with_the_remedy(plan, name, said):
    assert said in without_effect(Plan.parse(plan), name)
    assert name in without_effect(Plan.parse(plan), name)


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ("default", "fusion.alpha"), ("default", "fusion.weights.vector"), ("default", "fusion.weights.grep"),
        ("rrf", "fusion.k"), ("rrf", "fusion.weights"), ("default", "fusion.normalise"), ("default", "grep.when"),
        ("collections", "fusion.weights.vector"), ("collections", "depth.vector@artifacts"), ("collections", "fusion.prefer"),
        ("default sources=vector:b", "fusion.normalise.vector"), ("default sources=vector:b", "vector.metric"),
        ("default sources=vector,vector:b threshold.vector=0.4", "vector.threshold"), ("default", "threshold.vector"),
        ("default sources=grep@memory,keyword", "depth.grep@memory"), ("collections", "threshold.vector"),
    ],
)  # fmt: skip
def test_a_field_that_does_something_says_nothing(plan, name):
    assert without_effect(Plan.parse(plan), name) == ""


def test_the_remedy_for_a_field_that_does_nothing_works():
    for plan, name in (
        ("default", "fusion.k"), ("rrf", "fusion.alpha"), ("default sources=vector", "keyword.k1"),
        ("default threshold.vector=0.3", "vector.threshold"), ("default", "threshold.vector:b"), ("rrf", "depth.grep@a"),
    ):  # fmt: skip
        said = without_effect(Plan.parse(plan), name)
        assert without_effect(Plan.parse(f"{plan.split()[0]} {said.partition('add ')[2]}"), name) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fusion.q=1", "no plan field called 'fusion.q'"),
        ("fusion.kk=1", "Did you mean fusion.k"),
        ("limit=0", "from 1 to 1000"),
        ("depth.nonsense=5", "names no source"),
        ("depth=5", "needs a source"),
        ("threshold=0.4", "Write threshold.keyword or threshold.vector"),
        ("vector.threshold.vector:b=0.4", "Did you mean threshold.vector:b"),
        ("threshold.grep=0.4", "The source grep has no threshold"),
        ("threshold.vector=5", r"a number from 0 to 4 \(vector\) or from 0 to 1000 \(keyword\), off, or auto"),
        ("fusion.threshold=low", "a number from -1000 to 1000, or off"),
        ("nope", "no preset called 'nope'"),
        ("default 'limit=3", "open quote"),
        ("limit.max=5", "from 1 to 5"),
        ("rrf fusion.weights.keyword=0 fusion.weights.vector=0", "All weights are 0: keyword and vector .*vector=1"),
        ("fusion.alpha=1 sources=keyword,grep grep.when=always", "All weights are 0: .* Set fusion.alpha=0.5"),
    ],
)
def test_a_wrong_plan_is_one_readable_sentence(text, words):
    with pytest.raises(PlanError, match=words) as caught:
        Plan.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["sources=vector fusion.alpha=0", "fusion.alpha=1", "rrf fusion.weights.keyword=0"])
def test_a_source_without_weight_is_no_fault_where_others_have_some_or_it_is_alone(text):
    assert Plan.parse(str(Plan.parse(text))) == Plan.parse(text)


def test_depth_follows_the_limit_and_the_threshold_the_setting(monkeypatch):
    assert Plan.parse("limit=10").depth("keyword") == 100
    assert Plan.parse("limit=40").depth("keyword") == 200
    assert Plan.parse("depth.vector=7").depth("vector@artifacts") == 7
    plan = Plan.parse("limit=4 depth.vector=3x depth.keyword=+5")
    assert (plan.depth("vector"), plan.depth("keyword")) == (12, 9)
    assert Plan.parse(str(plan)) == plan == Plan.from_yaml(plan.to_yaml())
    for wrong in ("0x", "x", "+0", "-3", "3y"):
        with pytest.raises(PlanError):
            Plan.parse(f"depth.vector={wrong}")
    monkeypatch.setenv("WORKBENCH_VECTOR_SCORE_THRESHOLD", "0.4")
    assert preset("default")["vector.threshold"] == 0.4


def test_every_source_and_the_fused_list_have_thresholds_of_their_own():
    sources = ("vector", "vector@a", "vector:b", "vector:b@a")
    plan = Plan.parse("sources=vector,vector:b vector.threshold=0.6")
    assert [plan.threshold(s) for s in sources] == [0.6] * 4
    own = plan.replace({"threshold.vector": 0.4, "threshold.vector:b@a": "off"})
    assert [own.threshold(s) for s in sources] == [0.4, 0.4, 0.6, "off"]
    assert own.threshold_field("vector@a") == "threshold.vector"
    assert own.threshold_field("vector:b") == "vector.threshold"
    assert own.replace({"threshold.vector@a": "auto"}).threshold("vector@a") == 0.6
    assert own.replace({"threshold.vector": "auto", "threshold.vector:b@a": "auto"}) == plan
    assert own.with_threshold(0.2) == plan.replace({"vector.threshold": 0.2})
    assert Plan.from_yaml("preset: default\nfields:\n  threshold:\n    vector: off\n").threshold("vector") == "off"
    plan = Plan.parse("vector.threshold=0.4 threshold.keyword=2 fusion.threshold=0.01")
    assert [plan.threshold(s) for s in ("keyword", "keyword@a", "vector", "fused", "grep")] == [2, 2, 0.4, 0.01, "off"]
    assert [Plan.parse("default").threshold(s) for s in ("keyword", "fused")] == ["off", "off"]
    assert [plan.threshold_to_set(s) for s in ("keyword", "vector", "fused", "grep")] == [
        "threshold.keyword", "vector.threshold", "fusion.threshold", "",
    ]  # fmt: skip
    two = Plan.parse("sources=keyword@a,keyword@b,vector")
    assert two.threshold_to_set("keyword@a") == "threshold.keyword@a"
    assert plan.with_threshold("off").threshold("keyword") == 2
    both = Plan.parse("sources=keyword,vector,vector:b")
    assert [both.threshold_to_set(s) for s in both.vectors] == ["threshold.vector", "threshold.vector:b"]
    assert Plan.parse("default").threshold_to_set("vector") == "vector.threshold"
    assert Plan.parse("default threshold.vector=0.3").threshold_to_set("vector") == "threshold.vector"
    assert Plan.parse("default sources=keyword").threshold_to_set("vector") == "vector.threshold"


@pytest.mark.parametrize("name", ["Z>\x85%a", "a\u2028b", "é 'x' \"y\"", "a\\", "検索"])
def test_a_plan_file_reads_back_whatever_a_name_holds(name):
    plan = preset("default").replace({"collections": name})
    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert Plan.parse(str(plan)) == plan


ODD_NAMES = ("vector:/models/a=b c", "vector:static@notes", "vector@my docs", "vector:x'\"y")
"""Names of sources as folders and collections really are: blanks, quotes and equals signs in them."""


def values_of(field: plan_fields.Field) -> list[Any]:
    """Both ends (of a family those of every source), every choice, and what else a field's kind has."""
    if field.choices:
        return list(field.choices)
    ends = [end for end in (field.low, min(field.most.values(), default=field.high)) if end is not None]
    kinds: dict[str, list[Any]] = {
        "sources": ["grep", "keyword,vector@artifacts", "vector:/models/a=b c,grep"],
        "collections": ["docs", "all", "my docs,other"],
        "vector.threshold": ["off", 0.417],
        "threshold": ["off", "auto", 0.3],
        "fusion.threshold": ["off", 0.0164],
        "depth": ["auto", "3x", "+5", 7],
        "rerank.model": ["overlap", "/a b/c=d.txt", "endpoint:a \"b\" 'c'"],
        "rewrite.model": ["keywords", "endpoint:x"],
    }
    made = [*ends, *kinds.get(field.name, [])]
    return made or ["yes", "no"]


@pytest.mark.parametrize("field", plan_fields.FIELDS, ids=lambda f: f.name)
def test_every_value_of_every_field_parses_back(field):
    spellings = [f"{field.name}.{source}" for source in ODD_NAMES] if field.family else [field.name]
    for base, spelled, value in product(map(preset, BY_NAME), spellings, values_of(field)):
        start = base.replace({"limit": 1, "limit.max": 10_000} if field.name.startswith("limit") else {})
        plan = start.replace({spelled: value})
        assert Plan.parse(str(plan)) == plan
        assert str(Plan.parse(str(plan))) == str(plan)
        assert Plan.from_yaml(plan.to_yaml()) == pickle.loads(pickle.dumps(plan)) == plan
        assert changed(start, [f"{spelled}={plan_fields.show(value)}"]) == plan


NUMBERS = [s for s in settings.SETTINGS if s.kind in (int, float)]


@pytest.fixture
def in_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "settings.yaml"
    monkeypatch.setenv("WORKBENCH_SETTINGS", str(file))
    return file


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda s: s.name)
def test_bounds_are_included_and_nothing_beyond_them(setting, monkeypatch):
    assert setting.low is not None
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
def test_a_value_is_never_bent_to_fit(line, in_file):
    in_file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(SettingError, match=line.partition(":")[0]):
        settings.get(line.partition(":")[0])


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda s: s.name)
def test_a_name_with_nothing_behind_it_is_not_set(setting, in_file, monkeypatch):
    monkeypatch.delenv(setting.variable, raising=False)
    in_file.write_text(f"{setting.name}:\n", encoding="utf-8")
    assert settings.get(setting.name) == setting.default


def test_whole_numbers_and_plain_words_are_read(in_file):
    """YAML's own types where they say the same: 2.0 is two threads, a tenant may be a number."""
    in_file.write_text("threads: 2.0\ntenant: 5\napp_indexing: off\noidc_hours: 1\n", encoding="utf-8")
    assert [settings.get(n) for n in ("threads", "tenant", "app_indexing", "oidc_hours")] == [2, "5", False, 1.0]


@pytest.mark.parametrize(
    "data", ["corpus: caf\u00e9\n".encode("latin-1"), b"\xff\xfec\x00", b"[" * 5000, b"a: !!timestamp 2026-99-99"]
)
def test_a_file_that_cannot_be_read_as_settings_is_a_sentence(data, in_file):
    in_file.write_bytes(data)
    with pytest.raises(SettingError, match=r"is not UTF-8|cannot be read"):
        settings.get("corpus")


TEXTS = st.text(st.sampled_from("'=+-@\t\r\n＝a1,\"") | st.characters(codec="utf-8"), max_size=8)


@given(TEXTS)
def test_a_cell_is_no_formula_and_reads_back(text):
    assert cell(text)[:1] not in tuple("=+-@\t\r\n＝＋－＠")
    assert cell_text(cell(text)) == text


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_table_as_csv_holds_cells(texts):
    rows = list(csv.reader(io.StringIO(csv_of(pl.DataFrame({"=a": texts, "n": [-1.5] * len(texts)})), newline="")))
    assert rows == [["'=a", "n"], *([cell(text), "-1.5"] for text in texts)]
