"""Every command, snippet, link, file and dotted name of the documentation holds.

Fenced `sh` and `python` blocks run page by page in an empty folder; `<!-- only read: .. -->` before a block leaves it
at looking up verbs and options, `<!-- exits N -->` states the exit code, `<!-- file: NAME -->` writes it to a file.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main
from typer.testing import CliRunner

from reports.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
#: The design page shows commands as grammar (`a|b`, `[..]`), not as commands.
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
MANUAL = [p for p in PAGES if p.name != "design.md"]
IDS = [p.name for p in PAGES]
COMMAND: Any = typer.main.get_command(app)
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```", re.M | re.S)
COMMENT = re.compile(r"<!-- *(only read|exits|file):? *(.*?) *-->\s*$")
DOTTED = re.compile(r"(?<![\w./])(?:supply|econ|scenarios|reports)(?:\.[A-Za-z_]\w*)+")
FILES = re.compile(r"(?<![\w./-])((?:data|docs|tests|supply|econ|scenarios|reports|\.ci)/[\w./*-]*)")


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    comments: dict[str, str]
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        comments = {}
        for line in reversed(text[: found.start()].splitlines()):
            if (comment := COMMENT.search(line)) is None:
                break
            comments[comment[1]] = comment[2]
        indent = len(found["indent"])
        body = "\n".join(line[indent:] for line in found["body"].splitlines()) + "\n"
        yield Block(found["kind"], body, comments, text[: found.start()].count("\n") + 1)


def outside_fences(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def commands(page: Path) -> Iterator[list[str]]:
    """All commands of a page: of fences, of indented blocks, and of inline code that is a whole command."""
    inside = [line for b in blocks(page) if b.kind == "sh" for line in b.body.splitlines()]
    text = outside_fences(page)
    indented = [line for line in text.splitlines() if line.startswith("    ")]
    inline = re.findall(r"`(wafer2token [a-z][^`]*)`", text)
    for line in (*inside, *indented, *inline):
        line = re.split(r"\s{3,}|\s+#\s", line.strip())[0]
        if line.startswith("wafer2token "):
            yield shlex.split(line)[1:]


def parse(arguments: list[str]) -> None:
    """Look up verb, options and arguments without running the verb."""
    verb = arguments[0]
    assert verb in COMMAND.commands, f"no verb {verb}: {' '.join(arguments)}"
    try:
        COMMAND.commands[verb].make_context(verb, list(arguments[1:]))
    except click.exceptions.Exit:
        pass
    except Exception as exc:  # typer may carry its own copy of click
        raise AssertionError(f"wafer2token {' '.join(arguments)}: {getattr(exc, 'message', exc)}") from exc


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def named(dotted: str) -> Any:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            found: Any = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
            return found
    raise AssertionError(f"no module of {dotted}")


@pytest.mark.parametrize("page", MANUAL, ids=[p.name for p in MANUAL])
def test_verbs_and_options_exist(page: Path) -> None:
    for arguments in commands(page):
        if arguments and not any(a in {"SCENARIO", "VERB", "..."} for a in arguments[:1]):
            parse(arguments)


def test_a_wrong_option_would_be_found() -> None:
    with pytest.raises(AssertionError, match="--nonsense"):
        parse(["run", "base", "--nonsense"])
    with pytest.raises(AssertionError, match="no verb"):
        parse(["rnu", "base"])


def run_sh(block: Block) -> None:
    expected = int(block.comments.get("exits", "0"))
    for line in filter(None, block.body.splitlines()):
        assert line.startswith("wafer2token "), f"line {block.line}: only commands of the program can be run: {line}"
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == expected, f"{line}\n{done.output}"


def run_python(block: Block, names: dict[str, Any]) -> None:
    if ">>>" not in block.body:
        exec(compile(block.body, f"line {block.line}", "exec"), names)
        return
    runner = doctest.DocTestRunner(verbose=False)
    log: list[str] = []
    runner.run(doctest.DocTestParser().get_doctest(block.body, names, "page", None, block.line), out=log.append)
    assert not runner.failures, "".join(log)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(page):
        if "file" in block.comments:
            Path(block.comments["file"]).write_text(block.body, encoding="utf-8")
        elif block.kind == "python":
            if "only read" in block.comments:
                ast.parse(block.body)
            else:
                run_python(block, names)
        elif block.kind == "sh" and "only read" not in block.comments:
            run_sh(block)


def test_what_is_only_read_says_why() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert block.comments.get("only read", "reason"), f"{page.name}:{block.line} gives no reason"


def test_links_resolve() -> None:
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", outside_fences(page)):
            if target.startswith(("http://", "https://")):
                continue
            name, _, anchor = target.partition("#")
            place = page.parent / name if name else page
            if not place.exists():
                missing.append(f"{page.name}: {target}")
            elif anchor:
                headings = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.M)
                if anchor not in {slug(h) for h in headings}:
                    missing.append(f"{page.name}: {target}")
    assert not missing


def test_named_files_exist() -> None:
    """Paths of the checkout; words in capitals (`tests/ROOM/..`) stand for something."""
    missing = []
    for page in MANUAL:
        for code in re.findall(r"`([^`\n]+)`", outside_fences(page)):
            for path in FILES.findall(code):
                plain = path.rstrip(".")
                if re.search(r"/[A-Z]{2,}", plain) and not plain.endswith((".md", "LICENSE")):
                    continue
                if not (list(ROOT.glob(plain)) if "*" in plain else (ROOT / plain).exists()):
                    missing.append(f"{page.name}: {plain}")
    assert not missing


@pytest.mark.parametrize("page", MANUAL, ids=[p.name for p in MANUAL])
def test_dotted_names_import(page: Path) -> None:
    missing = []
    for code in re.findall(r"`([^`\n]+)`", outside_fences(page)):
        for dotted in DOTTED.findall(code):
            try:
                named(dotted)
            except (AssertionError, AttributeError) as exc:
                missing.append(f"{dotted}: {exc}")
    assert not missing


def feature_rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "features.md").read_text(encoding="utf-8").splitlines()
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines if re.match(r"\| [FN]\d", line)]


def test_features_are_complete_and_honest_in_form() -> None:
    rows = feature_rows()
    assert [r[0] for r in rows] == [f"F{n:03d}" for n in range(1, 104)] + [f"N{n:02d}" for n in range(1, 21)]
    for identity, feature, where, shown, status in rows:
        assert feature, identity
        assert re.fullmatch(r"yes|(partly|not yet): .{15,}", status), f"{identity}: {status}"
        assert status.startswith("not yet") or (where and shown), f"{identity} names no place or nothing that shows it"
    counts = [sum(r[4].split(":")[0] == s for r in rows) for s in ("yes", "partly", "not yet")]
    text = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    assert f"{counts[0]} yes, {counts[1]} partly, {counts[2]} not yet." in text


def test_tests_named_as_evidence_exist() -> None:
    for identity, _, _, shown, _ in feature_rows():
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", shown):
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.M), f"{identity}: {name}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
