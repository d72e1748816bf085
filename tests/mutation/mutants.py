"""Mutation sample of the core formulas: change one operator, number or term at a time and see whether a test notices.

    python tests/mutation/mutants.py --mutants 126 --seed 1

The tree is copied once; each mutant is written into the copy and judged by the doctests of its module and the tests of
its group, in a process forked from one that has the libraries loaded. A mutant is killed by a failing or hanging test.
Those that cannot change a result are listed with the reason in `equivalent.csv` beside this file and count as neither.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("supply", "econ", "scenarios", "reports", "data", "tests", "docs", "pyproject.toml", "wafer2token.py")
KNOWN = "tests/econ/test_formula_answers.py"
MAKING, ENGINE = "tests/supply/manufacturing/test_", "tests/econ/performance/test_"


@dataclass(frozen=True)
class Group:
    """Functions of one module (all of its functions where none is named) and the test files that answer for them."""

    name: str
    module: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = (
    Group("die yield", "supply/manufacturing/yield_models.py", (), (f"{MAKING}yield_models.py", KNOWN)),
    Group("gross dies", "supply/manufacturing/wafer.py", (), (f"{MAKING}wafer_placement.py", KNOWN)),
    Group("harvest", "supply/manufacturing/redundancy.py", (), (f"{MAKING}redundancy.py",)),
    Group(
        "stacks",
        "supply/manufacturing/stacks.py",
        (),
        (f"{MAKING}stacks_and_learning.py", f"{MAKING}packages_and_cost.py"),
    ),
    Group("package", "supply/manufacturing/packages.py", (), (f"{MAKING}packages_and_cost.py", KNOWN)),
    Group(
        "unit cost",
        "supply/manufacturing/cost.py",
        ("good_unit_cost", "_silicon", "_memory", "wafer_cost_usd"),
        (f"{MAKING}packages_and_cost.py",),
    ),
    Group("fleet survival", "supply/fleet.py", (), ("tests/supply/test_optimizer_second.py", KNOWN)),
    Group(
        "lags and annuity",
        "supply/optimizer/parameters.py",
        ("lag_weight", "_factors", "_share", "disruption_factor"),
        ("tests/supply/test_optimizer_reference.py", "tests/supply/test_optimizer_mechanisms.py", KNOWN),
    ),
    Group("potentials", "supply/potentials.py", (), ("tests/supply/test_bottleneck_report.py",)),
    Group(
        "capital",
        "econ/finance.py",
        (
            "capital_recovery_factor",
            "annuity_per_year",
            "straight_line_per_year",
            "market_value",
            "market_value_charge_per_year",
            "capitalised_interest",
            "tax_gross_up",
        ),
        ("tests/econ/test_finance.py", "tests/econ/test_gpu_hour.py", KNOWN),
    ),
    Group(
        "accelerator-hour",
        "econ/gpu_hour.py",
        ("_yearly_capital", "_yearly_running", "_electricity_per_sold_hour", "_bars", "_band"),
        ("tests/econ/test_gpu_hour.py", "tests/econ/test_finance_power_chain.py"),
    ),
    Group("token cost", "econ/tokens.py", (), ("tests/econ/test_tokens.py", KNOWN)),
    Group(
        "agent task",
        "econ/agent_task.py",
        ("_tries", "task_cost", "_hours", "_task_parts", "_interval", "total_spend", "break_even_price_ratio"),
        ("tests/econ/test_agent_task.py", KNOWN),
    ),
    Group(
        "goodput",
        "econ/goodput.py",
        (
            "young_interval",
            "daly_interval",
            "mtbf_for_interval",
            "first_order_loss",
            "exact_goodput",
            "best_interval",
            "goodput",
        ),
        ("tests/econ/test_failures_and_goodput.py", KNOWN),
    ),
    Group(
        "training flops",
        "econ/training_run.py",
        ("training_operations", "detailed_operations", "accelerator_hours", "training_days", "energy_mwh"),
        ("tests/econ/test_training_run.py",),
    ),
    Group("roofline", "econ/performance/roofline.py", (), (f"{ENGINE}operators_steps.py", f"{ENGINE}engine_shape.py")),
    Group(
        "operators",
        "econ/performance/operators.py",
        (),
        (f"{ENGINE}operators_steps.py", f"{ENGINE}shares_of_devices.py"),
    ),
    Group(
        "memory fit",
        "econ/performance/memory.py",
        ("kv", "_subtract", "_largest_context", "_least_tp"),
        (f"{ENGINE}memory_fit.py", f"{ENGINE}user_cases_engine.py", f"{ENGINE}shares_of_devices.py"),
    ),
    Group(
        "sampling ranks",
        "scenarios/sampling.py",
        ("_column", "rank_matrix", "correlated", "ranks_by_driver"),
        ("tests/scenarios/test_sampling_draws.py",),
    ),
    Group(
        "Shapley split", "scenarios/compare.py", ("shapley", "_exact"), ("tests/scenarios/test_compare_breakeven.py",)
    ),
)

SWAPS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
COMPARES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
ENDS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """One change: where, how the statement read and reads, and the whole changed module."""

    group: Group
    function: str
    line: int
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names the mutant in `equivalent.csv`: stable as long as its statement is."""
        return self.group.module, self.function, self.before, self.after


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """All single changes of one expression node."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
        yield node.left
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARES:
        yield ast.Compare(node.left, [COMPARES[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        step = max(1, type(node.value)(0.01 * abs(node.value)))  # a hundredth where that is more than one
        yield ast.Constant(node.value + step)
        yield ast.Constant(node.value - step)
    elif isinstance(node, ast.Name) and node.id in ENDS:
        yield ast.Name(ENDS[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in ENDS:
        yield ast.Attribute(node.value, ENDS[node.attr], ast.Load())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Expression places below a node as (parent, field, index, child); messages, types and defaults are left out."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "args", "decorator_list") and not isinstance(node, ast.Call):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.Raise | ast.JoinedStr) or not isinstance(child, ast.AST):
                continue
            yield node, name, index, child
            yield from places(child)


def put(parent: ast.AST, name: str, index: int | None, child: ast.AST) -> None:
    """Set a place of the tree."""
    if index is None:
        setattr(parent, name, child)
    else:
        getattr(parent, name)[index] = child


def mutants_of(group: Group) -> list[Mutant]:
    """Every mutant of a group, in the order of the source."""
    text = (ROOT / group.module).read_text()
    tree = ast.parse(text)
    out = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or (group.functions and function.name not in group.functions):
            continue
        if any(ast.unparse(d) == "overload" for d in function.decorator_list):
            continue
        for parent, name, index, child in list(places(function)):
            for change in changes(child):
                statement = enclosing(function, child)
                before = ast.unparse(statement).split("\n")[0]
                put(parent, name, index, copy.deepcopy(change))
                after, source = ast.unparse(statement).split("\n")[0], ast.unparse(tree)
                put(parent, name, index, child)
                out.append(Mutant(group, function.name, getattr(child, "lineno", 0), before, after, source))
    return out


def enclosing(function: ast.FunctionDef, node: ast.AST) -> ast.stmt:
    """The innermost statement that holds a node."""
    holders = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and any(n is node for n in ast.walk(s))]
    return holders[-1]


def sample(count: int, seed: int) -> list[Mutant]:
    """A sample with the same number from every group, as far as it has as many."""
    chooser = random.Random(seed)
    pools = [mutants_of(g) for g in GROUPS]
    for pool in pools:
        chooser.shuffle(pool)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(pools):
        chosen += [pool.pop() for pool in pools if pool][: count - len(chosen)]
    return sorted(chosen, key=lambda m: (GROUPS.index(m.group), m.line, m.after))


def passes(tree: Path, group: Group, limit_s: float) -> bool:
    """Whether the tests of a group pass on the copied tree, in a forked process."""
    child = os.fork()
    if child == 0:
        os.setsid()
        run_tests(tree, group)
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def run_tests(tree: Path, group: Group) -> None:
    """The tests of a group, doctests of its module first; ends the process."""
    import pytest

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    code = 1
    loaded_first = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    try:
        code = int(pytest.main(["-x", "-q", "--tb=no", *loaded_first, group.module, *group.tests]))
    finally:
        os._exit(code)


def warm() -> None:
    """Load the libraries of the tests, none of ours, once; hypothesis draws the same examples for all, unshrunk."""
    import hypothesis
    import matplotlib
    import pandas  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    matplotlib.use("Agg")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, derandomize=True, deadline=None, database=None)
    hypothesis.settings.load_profile("mutants")
    sys.dont_write_bytecode = True


def copied() -> Path:
    """A copy of what the tests read."""
    tree = Path(tempfile.mkdtemp(prefix="mutants_"))
    for name in ROOMS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy2(source, tree / name)
    return tree


def equivalent() -> set[tuple[str, str, str, str]]:
    """Mutants that were read and found to change no result, by key."""
    with Path(__file__).with_name("equivalent.csv").open(newline="") as file:
        return {(r["module"], r["function"], r["before"], r["after"]) for r in csv.DictReader(file)}


def judge(chosen: list[Mutant], tree: Path) -> list[str]:
    """killed, survived or equivalent for each mutant; survivors are printed as they come."""
    known, verdicts, limits = equivalent(), [], {}
    for mutant in chosen:
        group, target = mutant.group, tree / mutant.group.module
        if group.name not in limits:
            start = time.monotonic()
            if not passes(tree, group, 600):
                raise SystemExit(f"{group.name}: the tests fail without a mutant; mend them first")
            limits[group.name] = 20 + 5 * (time.monotonic() - start)
        if mutant.key in known:
            verdicts.append("equivalent")
            continue
        whole = target.read_text()
        target.write_text(mutant.source)
        verdicts.append("survived" if passes(tree, group, limits[group.name]) else "killed")
        target.write_text(whole)
        if verdicts[-1] == "survived":
            print(f"survived  {group.module}:{mutant.line}\n  - {mutant.before}\n  + {mutant.after}", flush=True)
    return verdicts


def table(chosen: list[Mutant], verdicts: list[str]) -> str:
    """Counts by group, and the share killed of those that can change a result."""
    counts = Counter((m.group.name, v) for m, v in zip(chosen, verdicts, strict=True))
    kinds = ("killed", "survived", "equivalent")
    lines = [f"{'group':<18}" + "".join(f"{k:>12}" for k in kinds)]
    for group in GROUPS:
        lines.append(f"{group.name:<18}" + "".join(f"{counts[group.name, k]:>12}" for k in kinds))
    whole = Counter(verdicts)
    lines.append(f"{'all':<18}" + "".join(f"{whole[k]:>12}" for k in kinds))
    real = whole["killed"] + whole["survived"]
    share = whole["killed"] / real if real else 0.0
    return "\n".join([*lines, f"{len(chosen)} mutants; {share:.1%} of the {real} that can change a result are killed"])


def main() -> int:
    """Run the sample; exit 1 where fewer than 90 % are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=140)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", action="append", help="only this group; may be repeated")
    chosen = parser.parse_args()
    warm()
    tree = copied()
    try:
        picked = [m for m in sample(chosen.mutants, chosen.seed) if not chosen.group or m.group.name in chosen.group]
        verdicts = judge(picked, tree)
    finally:
        shutil.rmtree(tree)
    print(table(picked, verdicts))
    real = [v for v in verdicts if v != "equivalent"]
    return int(verdicts.count("killed") < 0.9 * len(real))


if __name__ == "__main__":
    sys.exit(main())
