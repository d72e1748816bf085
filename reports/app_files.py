"""Files that leave the app: the scenario of a case, and its report."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supply.files import whole_text

if TYPE_CHECKING:
    from reports.app_model import Preview

__all__ = ["report_of", "scenario_text"]


def scenario_text(preview: Preview, entries: Sequence[tuple[str, dict[str, Any]]], title: str = "") -> str:
    """A case as a scenario file.

    A library scenario or a file is extended by name (the new file belongs into the same folder as its parent); a case
    of a run folder is written whole, because a run has no name to extend.

    >>> from reports.app_model import Preview
    >>> preview = Preview.open("course_11_1")
    >>> text = preview.scenario_text({"resources_cowos_capacity": 120}, title="More CoWoS")
    >>> print(text)  # doctest: +ELLIPSIS
    extends: course_11_1
    title: More CoWoS
    ...
    set:
      resources.cowos.capacity: {scale: 1.2, note: 'set in the app: 120.0 % of base, base 100.0'}
    <BLANKLINE>
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    content: dict[str, Any] = {}
    if preview.origin:
        path = Path(preview.origin)
        content["extends"] = path.name if path.suffix in (".yaml", ".yml") else preview.origin
        content["title"] = title or _title(preview)
        content["note"] = f"Made in the app on {preview.resolved.scenario.name}; run it with `wafer2token run FILE`."
    else:
        content = _whole(preview)
        content["title"] = title or _title(preview)
    listed = []
    for address, edit in entries:
        inner = CommentedMap(edit)
        inner.fa.set_flow_style()
        listed.append((address, inner))
    earlier = content.pop("set", None)
    if earlier is not None:
        before = [{k: v} for k, v in earlier.items()] if isinstance(earlier, dict) else list(earlier)
        content["set"] = [*before, *({a: e} for a, e in listed)]
    elif listed:
        content["set"] = dict(listed)
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 140
    yaml.dump(content, text)
    return text.getvalue()


def _whole(preview: Preview) -> dict[str, Any]:
    from ruamel.yaml import YAML

    from scenarios.runner import resolved_yaml

    return dict(YAML(typ="safe", pure=True).load(resolved_yaml(preview.resolved)))


def report_of(
    preview: Preview,
    settings: Mapping[str, float],
    start: str,
    folder: Path,
    *,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Run a case as the command line would and write its HTML report into a folder; returns the file.

    Raises:
        ScenarioError: when the case is wrong. InfeasibleError: when it has no optimum.
    """
    from reports.market_report import write_report
    from scenarios.load import load_scenario
    from scenarios.runner import run

    name = f"{preview.resolved.scenario.name}_case"
    if preview.origin:
        entries = [*preview.edits(preview.settings(settings), start), ("title", {"replace": _title(preview)})]
        loaded = load_scenario(preview.origin, entries, name=name)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.yaml"
        with whole_text(path) as handle:
            handle.write(preview.scenario_text(settings, start))
        loaded = load_scenario(path)
    done = run(loaded, out=folder / "runs", study=True, progress=progress)
    return Path(write_report([done], folder, progress=progress))


def _title(preview: Preview) -> str:
    return f"{preview.resolved.scenario.title}: a case from the app"
