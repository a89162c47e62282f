"""The one place for settings: each is declared once, with type, default, bounds and one line of help.

A value comes from the environment (`WORKBENCH_` and the name in capitals), else from the settings file
(`WORKBENCH_SETTINGS`, else `workbench/settings.yaml` in the user's configuration folder), else from the default. The
command line's `doctor`, the guide and the tests read this same table; an unknown key or a value outside its bounds is a
`SettingError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import SettingError, quoted

PREFIX = "WORKBENCH_"
_MOST_YAML_VALUES = 250_000
_DEEPEST_YAML = 40
FILE_VARIABLE = "WORKBENCH_SETTINGS"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, of the type of its default: text, a number or yes/no. Bounds include both ends; `choices` empty means any.

    A `secret` one is never shown: whoever prints settings prints whether it is set. In a `path` (or several, separated by the
    path separator) a leading `~` is the user's home folder.
    """

    name: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unprefixed: bool = False
    secret: bool = False
    path: bool = False

    @property
    def kind(self) -> type:
        """`str`, `int`, `float` or `bool`."""
        return type(self.default)

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return self.name.upper() if self.unprefixed else PREFIX + self.name.upper()

    def read(self, raw: Any, where: str) -> Any:
        """Turn a text or YAML value into the setting's type, or raise SettingError naming where it came from."""
        try:
            value = _typed(self.kind, raw)
        except (TypeError, ValueError, OverflowError) as exc:
            raise SettingError(
                f"{where} is {quoted(raw)}, which is not {_KINDS[self.kind]}", f"Set it to {self.bounds()}"
            ) from exc
        if self.path:
            value = os.pathsep.join(map(os.path.expanduser, value.split(os.pathsep)))
        # Written so that what is not a number is outside of any bounds.
        outside = (self.low is not None and not value >= self.low) or (self.high is not None and not value <= self.high)
        if outside or (self.choices and value not in self.choices):
            raise SettingError(f"{where} is {quoted(raw)}, which is outside its bounds", f"Set it to {self.bounds()}")
        return value

    def bounds(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.low is not None and self.high is not None:
            return f"{_KINDS[self.kind]} from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{_KINDS[self.kind]} of at least {self.low:g}"
        return _KINDS[self.kind]


_KINDS: Mapping[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "yes or no"}


_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def _typed(kind: type, raw: Any) -> Any:
    """A text or YAML value as one of the setting's type; nothing is cut off or made up to fit."""
    if kind is bool:
        text = str(raw).strip().lower()
        if text not in (*_YES, *_NO):
            raise ValueError(raw)
        return text in _YES
    if kind is str:
        if isinstance(raw, (list, dict)) or "\x00" in str(raw):
            raise TypeError(raw)
        return str(raw)
    value = kind(raw)
    if isinstance(raw, bool) or (isinstance(raw, float) and raw == raw and value != raw):
        raise ValueError(raw)
    return value


SETTINGS: tuple[Setting, ...] = (
    Setting("corpus", ".workbench", "Folder of the corpus that commands and pages open.", path=True),
    Setting("encoder", "all-MiniLM-L6-v2", "Sentence-transformers model: a name, a folder, or `hashing`."),
    Setting(
        "encoder_runtime",
        "auto",
        "What runs the model; `auto` takes the fastest that agrees with torch.",
        choices=("auto", "openvino", "torch"),
    ),
    Setting(
        "store",
        "",
        "Where the texts, words and vectors of a corpus are: address of a Milvus server, or a file of milvus-lite that ends in"
        " `.db`; empty: in the corpus's folder.",
    ),
    Setting(
        "store_name", "workbench", "What the corpus is called on the store: its alias, and how its collections begin."
    ),
    Setting("store_token", "", "`user:password` or API key for the store.", secret=True),
    Setting("store_database", "", "Database on the store; empty: its default one."),
    Setting("store_certificate", "", "File of the certificate that the store's TLS is checked with.", path=True),
    Setting("store_timeout_seconds", 10.0, "Longest that the store may take for one answer.", 0.1, 3600),
    Setting(
        "store_index",
        "HNSW",
        "How the store finds near vectors; `FLAT` compares with all of them.",
        choices=("HNSW", "IVF_FLAT", "FLAT"),
    ),
    Setting("cache_dir", "", "Where converted models are kept; empty means the user's cache folder.", path=True),
    Setting(
        "verify",
        "use",
        "When parts of a corpus that were written to are compared with their digests: before their first `use`, or all of them"
        " in the `background` from opening on (what is used sooner waits).",
        choices=("use", "background"),
    ),
    Setting("vector_score_threshold", 0.5, "Default of the plan field vector.threshold.", 0, 4),
    Setting("memory_limit_mb", 1024, "Memory that DuckDB may use in one process.", 128, 1 << 20),
    Setting("threads", 2, "Threads that a search or an indexing run may use.", 1, 256),
    Setting("max_file_mb", 64, "Files larger than this are skipped and listed.", 1, 1 << 16),
    Setting(
        "max_unpacked_mb", 512, "Most that one archive or Office file may unpack to, with all inside it.", 1, 1 << 16
    ),
    Setting(
        "max_members", 10_000, "Most members of one archive or mailbox, with those of archives inside it.", 1, 1 << 24
    ),
    Setting("max_nesting", 4, "How deep archives and attachments may lie in one another.", 1, 32),
    Setting("max_read_seconds", 120.0, "Longest that the reader of one file may go without an answer.", 0.1, 86400),
    Setting("max_read_memory_mb", 2048, "Most memory that the reader of one file may take.", 64, 1 << 20),
    Setting("ocr", False, "Whether words in scanned pages and pictures are recognised; needs the program tesseract."),
    Setting("ocr_languages", "eng", "Languages of what is recognised, as tesseract names them: `eng`, `deu+eng`."),
    Setting("chunk_tokens", 200, "Most tokens of a chunk, context included.", 16, 8192),
    Setting(
        "allowed_roots",
        "",
        "Folders that read_file may read below, separated by the path separator; empty: the indexed ones.",
        path=True,
    ),
    Setting(
        "allowed_models",
        "",
        "Models that a plan may name in the app's address, over MCP or in a snapshot, as rerank.model and rewrite.model have"
        " them, separated by commas; the built-in ones always may.",
    ),
    Setting("endpoint_url", "", "Base URL of a chat completion API for endpoint:MODEL; empty: nothing is sent."),
    Setting("endpoint_key", "", "Key for endpoint_url; no other key is ever sent.", secret=True),
    Setting("endpoint_timeout_seconds", 10.0, "Time for one call of the endpoint, its retry included.", 0.1, 600),
    Setting("rerank_timeout_seconds", 60.0, "Time for one reranking by a local cross-encoder.", 0.1, 3600),
    Setting("tenant", "", "Tenant of the local user, where the corpus has tenants."),
    Setting("roles", "", "Roles of the local user, separated by commas."),
    Setting(
        "corpus_private", True, "Whether files of a corpus are readable by their owner only; no: as the umask says."
    ),
    Setting(
        "mcp_plan",
        "default",
        "Plan of the MCP server's searches unless it is started with another: a preset's name or a plan's text form.",
    ),
    Setting(
        "mcp_memory",
        False,
        "Whether MCP clients may add memories to the corpus and remove them (`remember`, `forget`).",
    ),
    Setting("app_indexing", True, "Whether the local owner may start indexing runs from the Corpus page."),
    Setting("app_indexing_role", "", "Role that may index from the page where people sign in; empty: nobody may."),
    Setting(
        "app_indexing_roots",
        "",
        "Folders below which holders of app_indexing_role may index, each as TENANT=FOLDER, separated by the path separator.",
    ),
    Setting(
        "oidc_secrets", "", "TOML file with Streamlit's [auth] table; empty: its own secrets.toml, if any.", path=True
    ),
    Setting("oidc_tenant_claim", "", "Claim that names the tenant, dots go deeper; empty: no tenant."),
    Setting("oidc_roles_claim", "roles", "Claim with the roles, a list or a text; dots go deeper."),
    Setting("oidc_hours", 12.0, "Hours after which somebody signs in again, to have the roles of the day.", 0.01, 720),
    Setting("user", "", "Name recorded with judgments and snapshots; empty: the login name."),
    Setting("editor_link", "", "Link pattern that opens a file in an editor, with {path} and {line}."),
    Setting("measure_data", "", "Folder of collections to measure on; tests that need it skip without it.", path=True),
    Setting("rrf_constant", 60.0, "fusion.k of the preset `collections`.", 1, 10000, unprefixed=True),
    Setting("overfetch_multiplier", 3, "Depth of the preset `collections`, in limits.", 1, 100, unprefixed=True),
    Setting("max_hybrid_search_results", 50, "Largest limit of the preset `collections`.", 1, 10000, unprefixed=True),
)

BY_NAME: Mapping[str, Setting] = {s.name: s for s in SETTINGS}


def path_of(given: str | Path) -> Path:
    """A path as it was given to Python, where no shell has put the home folder in the place of a leading `~`."""
    return Path(os.path.expanduser(given))


def settings_file() -> Path:
    """Path of the user's settings file, which need not exist."""
    explicit = os.environ.get(FILE_VARIABLE)
    if explicit:
        return path_of(explicit)
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "workbench" / "settings.yaml"


def cache_dir() -> Path:
    """Folder for things that can be made again (converted models); made on first use by whoever writes there."""
    explicit = get("cache_dir")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "workbench"


def get(name: str) -> Any:
    """Value of one setting: environment, then file, then default. Raises SettingError.

    The file is read again at each call (it is small and settings are read rarely), so an edit needs no restart.
    """
    setting = BY_NAME.get(name)
    if setting is None:
        raise SettingError(f"There is no setting called {name!r}", "The settings are " + ", ".join(BY_NAME))
    raw = os.environ.get(setting.variable)
    if raw is not None:
        return setting.read(raw, f"The environment variable {setting.variable}")
    values = _file_values()
    # A name with nothing behind it (`tenant:`) is not set.
    if values.get(name) is not None:
        return setting.read(values[name], f"{name} in {settings_file()}")
    return setting.default


def _file_values() -> Mapping[str, Any]:
    path = settings_file()
    if not path.is_file():
        return {}
    try:
        values = read_yaml(path.read_text(encoding="utf-8")) or {}
    except UnicodeDecodeError as exc:
        raise SettingError(f"The settings file {path} is not UTF-8: {exc.reason}", "Save it as UTF-8") from exc
    except (OSError, ValueError) as exc:
        raise SettingError(f"The settings file {path} cannot be read: {exc}", "Fix it, or move it away") from exc
    if not isinstance(values, dict):
        raise SettingError(
            f"The settings file {path} is not a list of names and values", "Write one `name: value` a line"
        )
    unknown = sorted(set(map(str, values)) - set(BY_NAME))
    if unknown:
        raise SettingError(
            f"The settings file {path} has unknown keys: {', '.join(unknown)}", "The settings are " + ", ".join(BY_NAME)
        )
    return values


def read_yaml(text: str, first: int = 1) -> Any:
    """The value of a YAML text with plain values only: a settings file, a plan, a corpus's rules, a document's front matter.

    Args:
        first: The number of its first line, for messages.

    Raises:
        ValueError: Whatever is wrong with it, in a few words; also a value that (through aliases) unfolds into too much.
    """
    import yaml

    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe loaders
    except yaml.MarkedYAMLError as exc:
        mark = f" (line {exc.problem_mark.line + first})" if exc.problem_mark is not None else ""
        raise ValueError(f"{exc.problem or exc.context or 'it is not YAML'}{mark}") from exc
    except yaml.YAMLError as exc:
        raise ValueError(str(exc).partition("\n")[0].rstrip(".")) from exc
    except (ValueError, RecursionError, OverflowError, TypeError, LookupError, AttributeError) as exc:
        raise ValueError("it has a value of the wrong type") from exc
    left, level = _MOST_YAML_VALUES, [value]
    for _ in range(_DEEPEST_YAML):
        inner: list[Any] = []
        for one in level:
            inner += (
                [*one, *one.values()] if isinstance(one, dict) else one if isinstance(one, list | set | tuple) else ()
            )
            if len(inner) > left:
                raise ValueError("it has too many values")
        left, level = left - len(inner), inner
    if level:
        raise ValueError("it has too many values inside each other")
    return value


def login() -> str:
    """Who judges and makes snapshots on this machine: the setting `user`, else the login name, else nobody ("")."""
    import getpass

    try:
        return str(get("user")).strip() or getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
