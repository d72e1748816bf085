"""A run for other programs: IAMC-style CSV and XLSX, the stage graph as GraphML, its tables with a data package.

Variables are paths from the general to the special, split by `|` as in the databases of integrated assessment models;
quarters and months stand in the column `Subannual`, years in the columns after it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.context import Context
from reports.wording import stage_head
from supply.files import whole_file, whole_text

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from scenarios.runs import Run

__all__ = ["IAMC_HEADS", "iamc_table", "run_graph", "safe_text", "write_exchange"]

IAMC_HEADS = ("Model", "Scenario", "Region", "Variable", "Unit", "Subannual")
#: Also the wide forms of an East Asian keyboard, which some programs take for the narrow ones.
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: Quantity of the results -> head of the variable, and the parts that follow it.
_VARIABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "finished": ("Accelerators|Finished", ("subject",)),
    "energised": ("Accelerators|Energised", ("subject",)),
    "energised_h100e": ("Accelerators|Energised|H100-equivalents", ("subject",)),
    "fleet": ("Accelerators|Fleet", ("subject",)),
    "stranded": ("Accelerators|Stranded", ()),
    "fleet_mw": ("Power|Planning|Fleet", ("subject",)),
    "stranded_mw": ("Power|Planning|Stranded", ()),
    "built_mw": ("Power|Planning|Built", ()),
    "without_power_rows_mw": ("Power|Planning|Without power limits", ()),
    "without_chip_rows_mw": ("Power|Planning|Without chip limits", ()),
    "power_limited_mw": ("Power|Planning|Power-limited", ()),
    "chip_limited_mw": ("Power|Planning|Chip-limited", ()),
    "capacity": ("Limits|Capacity", ("stage", "subject")),
    "used": ("Limits|Use", ("stage", "subject")),
    "utilisation": ("Limits|Utilisation", ("stage", "subject")),
    "price": ("Limits|Price of one period", ("stage", "subject")),
    "lasting_price": ("Limits|Lasting price", ("stage", "subject")),
    "rent": ("Limits|Scarcity value", ("stage", "subject")),
    "starts": ("Processes|Starts", ("stage", "subject")),
    "stock": ("Materials|Stock", ("stage", "subject")),
    "built": ("Limits|Capacity built", ("subject",)),
    "usd_per_gpu_hour": ("Cost|Accelerator-hour|With scarcity", ("sku",)),
    "owner_usd_per_gpu_hour": ("Cost|Accelerator-hour|Owner", ("sku",)),
    "scarcity_usd_per_gpu_hour": ("Cost|Accelerator-hour|Scarcity", ("sku",)),
    "usd_per_mtoken_uncached_input": ("Cost|Tokens|Uncached input", ("model", "sku")),
    "usd_per_mtoken_cache_write": ("Cost|Tokens|Cache write", ("model", "sku")),
    "usd_per_mtoken_cache_read": ("Cost|Tokens|Cache read", ("model", "sku")),
    "usd_per_mtoken_output": ("Cost|Tokens|Output", ("model", "sku")),
    "tokens_per_sold_hour": ("Tokens per sold hour", ("model", "sku")),
    "usd_per_verified_task": ("Cost|Verified task", ("task", "model", "sku")),
    "objective": ("Objective", ()),
}


def safe_text(text: str) -> str:
    """Text that a spreadsheet program does not take for a formula when it opens a CSV file.

    >>> safe_text("=cmd()"), safe_text("TSMC")
    ("'=cmd()", 'TSMC')
    """
    return f"'{text}" if text.startswith(_FORMULA_SIGNS) else text


def iamc_table(run: Run) -> pd.DataFrame:
    """The results in IAMC form: `IAMC_HEADS`, then one column a year; low and high ends as variables of their own."""
    import pandas as pd

    c = Context(run)
    held = c.results[c.results["quantity"].isin(_VARIABLES)]
    label = _labels(c, held)
    rows: list[tuple[Any, ...]] = []
    for r in held.to_dict("records"):
        name = _variable(r, label)
        region = label[r["region"]] if r["region"] else "World"
        head = (f"wafer2token {run.manifest['version']}", run.scenario, region)
        year, _, part = str(r["period"]).partition("-")
        tail = (str(r["unit"]), part or "Year", year)
        ends = [("", r["value"]), ("|Low", r["low"]), ("|High", r["high"])]
        rows += [(*head, name + end, *tail, float(v)) for end, v in ends if not math.isnan(v)]
    table = pd.DataFrame(rows, columns=[*IAMC_HEADS, "Year", "Value"])
    wide = table.pivot(index=list(IAMC_HEADS), columns="Year", values="Value").reset_index()
    wide.columns.name = None
    return wide


def _labels(c: Context, rows: pd.DataFrame) -> dict[str, str]:
    """Title of each id; where two ids share one, the id stands behind it."""
    ids = {str(i) for column in ("subject", "sku", "model", "region") for i in rows[column].unique()}
    titles = {i: c.title(i).replace("|", "/") for i in sorted(ids)}
    shared = {t for t in titles.values() if list(titles.values()).count(t) > 1}
    return {i: f"{t} ({i})" if t in shared else t for i, t in titles.items()}


def _variable(row: Mapping[Hashable, Any], label: Mapping[str, str]) -> str:
    head, parts = _VARIABLES[row["quantity"]]
    stage, task = str(row["stage"]), str(row["subject"]).split("/", maxsplit=1)[0]
    own = {"stage": stage_head(stage), "task": task}
    names = [own[part] if part in own else label[str(row[part])] for part in parts]
    return "|".join([head, *(n for n in names if n)])


def run_graph(run: Run) -> nx.MultiDiGraph:
    """The stage graph of a run with its results of the as-of period: use and price of limits, starts, fleet."""
    c = Context(run)
    graph = _stage_graph(run)
    graph.graph.update(run=run.id, scenario=run.scenario, period=c.now)
    here = c.results[c.results["period"] == c.now]
    for prefix, quantities in (
        ("resource", ("capacity", "used", "utilisation", "price", "lasting_price")),
        ("process", ("starts",)),
        ("material", ("stock",)),
        ("fleet", ("fleet", "energised")),
    ):
        rows = here[here["quantity"].isin(quantities)]
        for r in rows.to_dict("records"):
            node, name = f"{prefix}:{r['subject']}", str(r["quantity"])
            if node in graph:  # the rows of a product in several regions add up
                graph.nodes[node][name] = graph.nodes[node].get(name, 0.0) + float(r["value"])
    return graph


def _stage_graph(run: Run) -> nx.MultiDiGraph:
    """The graph that the run stored; a run of an earlier version is resolved again."""
    from scenarios.report_tables_source import graph_of

    try:
        return graph_of(run.table("graph_nodes"), run.table("graph_edges"))
    except KeyError:
        from scenarios.load import load_scenario
        from scenarios.resolve import resolve
        from supply.graph import build_graph

        assert run.folder is not None
        return build_graph(resolve(load_scenario(run.folder / "scenario.yaml", name=run.scenario)).network)


def write_exchange(run: Run, folder: str | Path) -> Path:
    """Write everything into a folder; returns the path of its `datapackage.json`."""
    from supply.graph import write_graphml

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    table = iamc_table(run)
    _write_csv(table, target / "iamc.csv")
    _write_iamc_xlsx(run, table, target / "iamc.xlsx")
    with whole_file(target / "stage_graph.graphml") as working:
        write_graphml(run_graph(run), working)
    frames = {"iamc": table}
    for name in ("results", "inputs", "checks", "binding", "names"):
        try:
            frames[name] = run.table(name)
        except KeyError:  # a run of an earlier version
            continue
        _write_csv(frames[name], target / f"{name}.csv")
    package = target / "datapackage.json"
    with whole_text(package) as stream:
        stream.write(json.dumps(_package(run, target, frames), indent=1, ensure_ascii=False) + "\n")
    return package


def _write_csv(frame: pd.DataFrame, path: Path) -> None:
    """UTF-8 with a header; numbers with every digit, texts that look like formulas quoted by an apostrophe."""
    with whole_text(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(frame.columns)
        for row in frame.itertuples(index=False):
            writer.writerow([_printed(value) for value in row])


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return safe_text(value)
    if value is None or value != value:
        return ""
    if isinstance(value, float):  # numpy's float64 is one
        return repr(float(value)) if math.isfinite(value) else "INF" if value > 0 else "-INF"
    return str(value)


def _write_iamc_xlsx(run: Run, table: pd.DataFrame, path: Path) -> None:
    """Sheets `data` and `meta`, as programs for IAMC data expect them."""
    import xlsxwriter

    quiet = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with whole_file(path) as working, xlsxwriter.Workbook(str(working), quiet) as book:
        book.set_properties({"created": datetime.fromisoformat(run.manifest["created"])})
        data = book.add_worksheet("data")
        _sheet(data, list(table.columns), table.itertuples(index=False))
        data.set_column(3, 3, 60)
        data.freeze_panes(1, len(IAMC_HEADS))
        m = run.manifest
        heads = ["Model", "Scenario", "Run", "SHA-256", "Facts known up to", "Regime", "Objective"]
        row = [f"wafer2token {m['version']}", run.scenario, run.id, run.hash, m["as_of"], run.answer["regime"]]
        _sheet(book.add_worksheet("meta"), heads, [[*row, run.answer["objective"]["kind"]]])


def _sheet(sheet: Any, heads: list[str], rows: Iterable[Iterable[Any]]) -> None:
    for column, head in enumerate(heads):
        sheet.write_string(0, column, str(head))
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row):
            if isinstance(value, str):
                sheet.write_string(number, column, value)
            elif value is not None and math.isfinite(value):
                sheet.write_number(number, column, float(value))


def _package(run: Run, folder: Path, frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The description of the folder after the Frictionless Data Package standard."""
    m = run.manifest
    resources: list[dict[str, Any]] = [
        _resource(folder / f"{name}.csv", "text/csv")
        | {"name": name, "profile": "tabular-data-resource", "schema": {"fields": _fields(frame)}}
        for name, frame in frames.items()
    ]
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    resources.append(_resource(folder / "iamc.xlsx", sheet) | {"name": "iamc_xlsx"})
    resources.append(_resource(folder / "stage_graph.graphml", "application/graphml+xml") | {"name": "stage_graph"})
    sources = {(str(f["source"]), str(f.get("url") or "")) for f in m.get("facts", {}).values() if f.get("url")}
    return {
        "profile": "data-package",
        "name": re.sub(r"[^a-z0-9.]+", "-", run.id.lower()).strip("-"),
        "title": str(m["title"]),
        "description": f"Run {run.id} of wafer2token {m['version']}, regime {run.answer['regime']}.",
        "id": run.hash,
        "version": str(m["version"]),
        "created": str(m["created"]),
        "licenses": [
            {
                "name": "CC-BY-4.0",
                "title": "Contains data by Epoch AI, CC BY 4.0; all other facts are single figures from their sources",
                "path": "https://creativecommons.org/licenses/by/4.0/",
            }
        ],
        "sources": [{"title": title, "path": url} for title, url in sorted(sources)],
        "resources": resources,
    }


def _resource(path: Path, kind: str) -> dict[str, Any]:
    content = path.read_bytes()
    return {
        "path": path.name,
        "mediatype": kind,
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
    } | ({"encoding": "utf-8"} if kind == "text/csv" else {})


def _fields(frame: pd.DataFrame) -> list[dict[str, str]]:
    kinds = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}
    return [{"name": str(name), "type": kinds.get(frame[name].dtype.kind, "string")} for name in frame.columns]
