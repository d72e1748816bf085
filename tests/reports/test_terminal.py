"""The terminal: every verb at 80 and 60 columns, streams apart, quiet, colour, encodings, pipes, Ctrl-C, help."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from reports.cli import terminal
from reports.cli.app import app

COMMAND: Any = typer.main.get_command(app)
VERBS = sorted(COMMAND.commands)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Lines that are copied and so never broken: paths and commands.
COPIED = ("run: ", "report: ", "sample: ", "written: ", "Next: ", "reports/", "made")
SCENARIO = """extends: course_11_1
title: Packaging slips and a third of the dies is lost
set:
  resources.cowos.capacity: {scale: 0.8}
  processes.make_die.yield: {value: 0.7, range: [0.5, 0.8], kind: illustrative, note: "an example, no source"}
outputs: ["finished:accelerator@2026-Q1"]
"""
CASES = """id,model,hardware,isl,osl,concurrency_or_batch,tp,framework,metric,unit
a,Llama-3.1-70B,H100,1000,1000,64,4,vLLM,tpot_mean,ms
"""
TARGET = "finished:accelerator@2026-Q1"
#: Verb -> a small call of it. A new verb needs one here.
CALLS = {
    "run": "run tight.yaml --out runs",
    "check": "check tight.yaml --outputs",
    "report": "report RUN --out reports",
    "facts": "facts cowos --limit 3",
    "examples": "examples",
    "cases": "cases costs.csv --out c.csv",
    "predict": "predict cases.csv --out p.csv",
    "validate": "validate",
    "engine": "engine Llama-3.1-70B H100 --tp 4",
    "sample": "sample tight.yaml --draws 4",
    "sensitivity": "sensitivity tight.yaml",
    "compare": "compare course_11_1 tight.yaml",
    "breakeven": f"breakeven tight.yaml --input resources.cowos.capacity --target {TARGET}=9000",
    "discover": f"discover tight.yaml --target '{TARGET}<7900' --draws 60",
    "resilience": "resilience tight.yaml --longest 1",
    "map": "map tight.yaml --x processes.make_die.yield --y resources.cowos.capacity --steps 2",
    "new": "new made",
}
#: Looked at elsewhere: minutes long, or a server.
APART = {"backtest", "view", "compare-all"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from scenarios.runner import run

    folder = tmp_path_factory.mktemp("terminal")
    (folder / "tight.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "cases.csv").write_text(CASES, encoding="utf-8")
    (folder / "costs.csv").write_text("case_id,inputs_json,output_quantity\na,{},nothing\n", encoding="utf-8")
    run("course_11_1", out=folder / "runs")
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return place


def words(verb: str, folder: Path) -> list[str]:
    run = next(p for p in (folder / "runs").iterdir() if p.name.startswith("course"))
    text = CALLS[verb].replace("RUN", str(run.relative_to(folder)))
    return shlex.split(text.replace("made", f"made{len(list(folder.glob('made*')))}"))


def too_long(text: str, columns: int) -> list[str]:
    return [line for line in text.splitlines() if len(line) > columns and not line.startswith(COPIED)]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def process(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    """The program as a process of its own, both streams piped."""
    environment = {**os.environ, **more.pop("env", {})}
    command = [sys.executable, "-c", "import sys, wafer2token; sys.exit(wafer2token.main())", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, **more)


def test_every_verb_has_a_call_here() -> None:
    assert set(CALLS) | APART == set(VERBS)


@pytest.mark.parametrize("verb", CALLS)
def test_output_fits_80_columns_and_stays_apart_from_progress(verb: str, here: Path) -> None:
    done = call(*words(verb, here))
    assert done.exit_code == 0, done.output
    assert not too_long(done.stdout, 80), too_long(done.stdout, 80)
    assert done.stdout.strip() and not ESCAPE.search(done.output)
    for step in ("reading inputs", "solving the optimum", "inputs moved", " draws, about", "sites and stages"):
        assert step not in done.stdout


@pytest.mark.parametrize("verb", ["run", "sensitivity", "sample", "resilience", "map", "engine", "validate", "compare"])
def test_60_columns_are_sane(verb: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    done = call(*words(verb, here))
    assert done.exit_code == 0 and not too_long(done.stdout, 60), too_long(done.stdout, 60)


@pytest.mark.parametrize("verb", CALLS)
def test_json_is_one_object_and_quiet_leaves_stderr_empty(verb: str, here: Path) -> None:
    done = call(*words(verb, here), "--json", "--quiet")
    assert done.exit_code == 0, done.output
    assert isinstance(json.loads(done.stdout), dict)
    assert done.stderr == ""


def test_quiet_leaves_the_answer(here: Path) -> None:
    loud, quiet = call("run", "tight.yaml"), call("run", "tight.yaml", "--quiet")
    assert quiet.stdout == loud.stdout and quiet.stderr == "" and "solving the optimum" in loud.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_call_says_so_on_stderr_only(verb: str, here: Path) -> None:
    done = call(verb, "--nonsense")
    assert done.exit_code == 2 and done.stdout == "" and "--nonsense" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_a_summary_an_example_that_parses_and_fits(verb: str, here: Path) -> None:
    done = call(verb, "--help")
    assert done.exit_code == 0 and max(len(line) for line in done.stdout.splitlines()) <= 80
    command = COMMAND.commands[verb]
    summary, *rest = [part for part in command.help.split("\n\n") if part.strip()]
    assert len(summary) <= 80 and "\n" not in summary
    examples = [part.strip().removeprefix("Example: ") for part in rest if part.strip().startswith("Example: ")]
    assert examples
    for example in examples:
        program, name, *arguments = shlex.split(example)
        assert (program, name) == ("wafer2token", verb)
        command.make_context(name, arguments)
    for parameter in command.params:
        assert parameter.help or parameter.name == "help", f"{verb}: {parameter.name} has no help"


@pytest.mark.parametrize(
    ("arguments", "code", "where", "fix"),
    [
        (("rum", "base"), 2, "'rum'", "'run'"),
        (("run", "basee"), 3, "basee", "did you mean base?"),
        (("run", "tight.yaml", "--outt", "x"), 2, "--outt", "--out"),
        (("run", "tight.yaml", "--set", "x"), 2, "--set #1: 'x'", "PATH=VALUE"),
        (("run", "tight.yaml", "--set", "discount_rate=0.1", "--set", "b=["), 2, "--set #2: b", "not valid YAML"),
        (("run", "tight.yaml", "--set", "b=1\nc: 2"), 2, "--set #1: b", "one value"),
        (("run", "tight.yaml", "--set", "resources.cowos.capasity=3"), 3, "--set #1", "did you mean"),
        (("sensitivity", "tight.yaml", "--method", "torndo"), 3, "--method 'torndo'", "one of tornado, morris"),
        (("report", "nodir"), 3, "nodir", "manifest.json"),
        (("facts", "--show", "nosuch"), 3, "'nosuch'", "facts WORDS"),
        (("backtest", "--origin", "soon"), 2, "--origin 'soon'", "2024-01-01"),
        (("backtest", "--origin", "2023-01-01"), 3, "2023-01-01", "choose one of"),
        (("engine", "Llama-3.1-70", "H100"), 3, "'Llama-3.1-70'", "did you mean"),
        (("resilience", "tight.yaml", "--from", "2030-Q1"), 3, "--from '2030-Q1'", "2026-Q1"),
        (("resilience", "tight.yaml", "--recover", "fab"), 3, "--recover 'fab'", "SITE=PERIODS"),
        (("map", "tight.yaml", "--span", "2,1"), 3, "--span '2,1'", "0.8,1.2"),
        (("breakeven", "tight.yaml", "--input", "resources.cowos.capacity", "--target", "x"), 3, "'x'", "OUTPUT=VALUE"),
        (("check", "tight.yaml", "--set", "discount_rate=.nan"), 2, "--set #1", "finite"),
    ],
)
def test_errors_say_place_value_and_what_to_do(
    arguments: tuple[str, ...], code: int, where: str, fix: str, here: Path
) -> None:
    done = call(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == "" and where in done.stderr and fix in done.stderr and "Traceback" not in done.stderr


def test_a_set_has_the_limits_of_a_file(here: Path) -> None:
    """Anchors that unfold to billions of entries, and deep nesting, are refused before they are built."""
    bomb = (
        "[&a [x,x,x,x,x,x,x,x,x,x]"
        + "".join(f",&{c} [{','.join([f'*{p}'] * 10)}]" for p, c in zip("abcdefg", "bcdefgh", strict=True))
        + "]"
    )
    for text in (bomb, "[" * 100 + "]" * 100):
        done = call("run", "tight.yaml", "--set", f"discount_rate={text}")
        assert done.exit_code == 2 and "--set #1: discount_rate" in done.stderr, done.stderr[:400]
        assert "more than" in done.stderr and len(done.stderr) < 500


@pytest.mark.parametrize(
    ("settings", "bold"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False),
     ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({"FORCE_COLOR": "1", "TERM": "dumb"}, False)],
)  # fmt: skip
def test_colour_follows_the_environment(
    settings: dict[str, str], bold: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    text = call("run", "tight.yaml").stdout
    assert bool(ESCAPE.search(text)) is bold
    assert ESCAPE.sub("", text) == call_plain("run", "tight.yaml")


@functools.cache
def call_plain(*arguments: str) -> str:
    return ESCAPE.sub("", call(*arguments).stdout)


def test_sparkline_of_use_and_its_ascii_form(here: Path) -> None:
    chain = SCENARIO.replace("set:", "horizon: {periods: 4}\nset:")
    (here / "longer.yaml").write_text(chain, encoding="utf-8")
    assert "█" in call("run", "longer.yaml").stdout
    for encoding, sign in (("ascii", "9999"), ("utf-8", "████")):
        done = process("run", "longer.yaml", "--quiet", env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
        out, err = done.communicate(timeout=60)
        assert done.returncode == 0 and err == "" and sign in out
        assert out.isascii() is (encoding == "ascii")


@pytest.mark.parametrize("arguments", [("facts", "a", "--limit", "400"), ("--help",)])
def test_a_reader_that_goes_away_leaves_no_trace(arguments: tuple[str, ...], here: Path) -> None:
    with process(*arguments) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode in (0, 1)  # 1: the help page, which the option parser itself writes


def test_ctrl_c_is_130_without_a_trace(here: Path) -> None:
    # a shell that starts the suite in the background has Ctrl-C ignored, and processes inherit that
    with process("run", "base", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as running:
        assert running.stderr is not None
        while "reading inputs" not in running.stderr.readline():
            assert running.poll() is None
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert running.returncode == 130
    assert "interrupted" in rest and "Traceback" not in rest


def test_tables_wrap_text_and_never_cut_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["energised AI power in the United States and the rest of the world", "123,456,789", "0.001"]]
    for columns in (40, 60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal.table(["limit", "value", "share"], rows)
        out = capsys.readouterr().out
        assert max(len(line) for line in out.splitlines()) <= columns
        assert "123,456,789" in out and "0.001" in out
        shown = out.replace("123,456,789", " ").replace("0.001", " ").split()
        assert set(rows[0][0].split()) <= set(shown)


def test_an_accelerator_that_is_never_made_is_told(tmp_path: Path) -> None:
    from reports.cli.run import not_made
    from scenarios.runner import run

    text = (
        "title: Two chips\nhorizon: {start: 2026-Q1, periods: 2, tail: 0}\nobjective: {kind: value, costs: purchase}\n"
        "regions: {us: {}}\nmaterials: {good: {unit: accelerator}, poor: {unit: accelerator}}\n"
        "resources: {line: {capacity: 10}, power: {stage: power, region: us, capacity: 1 MW}}\n"
        "processes:\n  make_good: {output: {good: 1}, uses: {line: 1}, lead_time: 0 week}\n"
        "  make_poor: {output: {poor: 1}, uses: {line: 1}, lead_time: 0 week}\nfleet:\n"
        "  good: {title: Good, material: good, regions: [us], kw_planning: 1, value: 2, purchase_cost: 1}\n"
        "  poor: {title: Poor, material: poor, regions: [us], kw_planning: 1, value: 1, purchase_cost: 1}\n"
    )
    path = tmp_path / "two.yaml"
    path.write_text(text, encoding="utf-8")
    told = not_made(run(path, prices=False, costs=False))
    assert told == ["Poor (poor) is never made: with the limits that bind, an hour of others earns more"]
