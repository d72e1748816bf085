"""The market report: one context of finished runs, one self-contained page. It reads run tables, it solves nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reports.answer_text import AnswerLine
from reports.blocks import Section
from reports.catalogue import english, say, spoken, using
from reports.context import Context
from reports.draws import add_draws, open_draws
from reports.figures.style import dark_colour
from reports.first_page import first_page, flip_warning
from reports.sections.changes import causes_of, changes_section
from reports.sections.compare import compare_section
from reports.sections.costs import costs_section
from reports.sections.evidence import accuracy_section, others_section, overturn_section
from reports.sections.flow import engine_section, flow_section
from reports.sections.inputs import inputs_section, method_section, repeat_section, rule_section
from reports.sections.limits import binding_figure, limits_section, prices_section
from reports.sections.making import making_section
from reports.sections.market import market_section
from reports.sections.studies import studies_section
from reports.sections.supply import power_section, supply_section
from reports.sections.training import training_section
from reports.spans import Number, pieces
from reports.traces import FORMULAS, of_line, of_section, of_table
from supply.files import whole_text

if TYPE_CHECKING:
    from reports.choices import Choices, Logo
    from reports.figures.style import FigureCard
    from scenarios.runs import Run

__all__ = ["Report", "make_report", "render_html", "write_report"]


@dataclass
class Report:
    """Everything that a report says, whatever the format."""

    title: str
    subtitle: str
    answer: list[AnswerLine]
    warnings: list[str]
    lead: FigureCard | None
    sections: list[Section]
    source_line: str
    footer: str
    run_id: str
    logo: Logo | None = None
    language: str = field(default_factory=lambda: spoken().language)
    words: dict[str, str] = field(default_factory=lambda: spoken().group("fixed"))

    @property
    def figures(self) -> list[FigureCard]:
        """All figures in order."""
        return [*([self.lead] if self.lead else []), *(f for s in self.sections for f in s.figures)]


def make_report(
    runs: Sequence[Run],
    previous: Run | None = None,
    sample: Path | None = None,
    choices: Choices | None = None,
    studies: Sequence[Path] = (),
) -> Report:
    """The report of the first run; further runs are set beside it.

    Args:
        runs: finished runs, the subject first.
        previous: an earlier run, for what changed.
        sample: folder of a stored sample of the same scenario, for bands over time.
        choices: sections, title, logo, notes, language and studies of an edition.
        studies: folders of stored studies, see `reports.sections.studies`.

    Raises:
        PlaceholderError: when an input of a run is a placeholder.
        SampleError: when the sample is not of the run's scenario and periods.
        ScenarioError: when a chosen section is not in this report.
    """
    with using(choices.catalogue if choices is not None else english()):
        report = _made(runs, previous, sample, [*studies, *(choices.studies if choices is not None else ())])
        if choices is not None:
            from reports.choices import apply_choices

            apply_choices(report, choices)
    return report


def _made(runs: Sequence[Run], previous: Run | None, sample: Path | None, studies: Sequence[Path]) -> Report:
    """All sections that the runs can fill, in the language in use."""
    contexts = [Context(r) for r in runs]
    c = contexts[0]
    before = Context(previous) if previous is not None else None
    causes = causes_of(c, before) if before is not None else None
    made = [
        rule_section(contexts),
        limits_section(c),
        prices_section(c),
        supply_section(c),
        flow_section(c),
        power_section(c),
        costs_section(c),
        market_section(c),
        engine_section(c),
        training_section(c),
        making_section(c),
        overturn_section(c),
        studies_section(c, studies),
        others_section(c),
        compare_section(contexts) if len(contexts) > 1 else None,
        changes_section(c, before, causes) if before is not None else None,
        accuracy_section(c),
        method_section(c),
        inputs_section(c),
        repeat_section(c),
    ]
    weak, all_ = c.illustrative
    report = Report(
        title=str(c.run.manifest["title"]),
        subtitle=say("fixed.subtitle", known=c.known_words),
        answer=first_page(c, before, causes),
        warnings=[w for w in [flip_warning(c)] if w],
        lead=binding_figure(c) if len(c.binding) else None,
        sections=[s for s in made if s is not None],
        source_line=say(
            "fixed.source_line", run=c.run.id, regime=c.answer["regime"], known=c.known_words, weak=weak, all=all_
        ),
        footer=say("fixed.footer", version=c.run.manifest["version"], run=c.run.id, hash=c.run.hash),
        run_id=c.run.id,
    )
    if sample is not None:
        add_draws(report, c, open_draws(sample, c))
    return report


def render_html(report: Report) -> str:
    """The report as one HTML page; every text is escaped, nothing is fetched."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("reports", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"tagged": _tagged, "breakable": _breakable}
    lines = {words: key for key, words in spoken().group("first_page").items()}
    trace: dict[str, Callable[..., list[str]]] = {
        "line": lambda label: of_line(lines.get(label, "")),
        "section": of_section,
        "table": of_table,
    }
    names = {name: say(f"made.{name}.name") for name in FORMULAS}
    colours = [(c, dark_colour(c)) for c in sorted(set().union(*(f.colours for f in report.figures)))]
    template = environment.get_template("report.html.j2")
    return template.render(report=report, trace=trace, formulas=names, colours=colours)


def _tagged(text: str) -> str:
    """Escaped text whose numbers are `<data>` elements with their unrounded values."""
    from markupsafe import Markup, escape

    tag = Markup('<data value="{}">{}</data>')
    parts = [tag.format(f"{p.value:.12g}", p) if isinstance(p, Number) else escape(p) for p in pieces(text)]
    return Markup("").join(parts)


def _breakable(name: str) -> str:
    """An escaped name such as `power.united_states` that may go on in a new line after each of its parts."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.findall(r"[^._]*[._]*", name)[:-1])


def write_report(
    runs: Sequence[Run],
    out_folder: Path,
    previous: Run | None = None,
    progress: Callable[[str], None] | None = None,
    report: Report | None = None,
) -> Path:
    """Write the HTML report of finished runs into a folder, with its figures as SVG and CSV; returns the path of the
    page.

    The page is named after the first run, so that reports of several runs can share a folder. `report`: one already
    made from these runs.
    """
    tell = progress or (lambda text: None)
    tell("writing the report")
    report = report or make_report(runs, previous)
    folder = Path(out_folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.run_id}.html"
    with whole_text(path) as page:
        page.write(render_html(report))
    for figure in report.figures:
        figure.save(folder / f"{report.run_id}-figures", source=report.source_line)
    return path
