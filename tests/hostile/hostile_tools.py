"""What the hostile tests share: how many examples, mutations of accepted files, and limits of time and memory."""

from __future__ import annotations

import contextlib
import copy
import csv
import io
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

#: Examples of each input kind: few in the suite, `HOSTILE_EXAMPLES=2000` at length.
EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "60"))
#: An example that takes longer hangs (a busy machine needs seconds for what takes milliseconds alone).
SECONDS = 60
#: Address space that one example may add.
MEMORY = 3 * 2**30

Place = tuple[Any, ...]


def fuzzed(share: float = 1.0) -> settings:
    """Settings of a property test; a short run always takes the same examples."""
    return settings(
        max_examples=max(10, int(EXAMPLES * share)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=EXAMPLES < 100,
        database=None,
        phases=(Phase.generate,) if EXAMPLES > 100 else (Phase.generate, Phase.shrink),
    )


@contextlib.contextmanager
def limited(seconds: int = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Fail what hangs or fills the memory."""

    def stop(*_: object) -> None:
        raise AssertionError(f"hangs: more than {seconds} s")

    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


WORDS = [
    *("", " ", "nan", "inf", "-inf", "1e400", "-1", "0", "-0", "1e308", "5e-324", "9" * 400, "0x10", "1_000", "1,5"),
    *("true", "null", "none", "~", "2026-Q1", "2026-13-01", "2026-02-30", "9999-12-31", "0000-01-01", "1e308 die"),
    *("die", "5 °C", "9**9**9 die", "=cmd()|' /C calc'!A0", "<script>alert(1)</script>", "<img onerror=x>", "{{x}}"),
    *("\u202e", "\ufeff", "\u2028", "\x1b[31m", "a\nb", "a\tb", "..", "../../etc/passwd", "/dev/zero", "*", "[a", "{b"),
    *("#eval", "$x$", "\\", "'", '"', "'; drop table", "%s%n", "\x85", "x" * 2000, "１２", "½", "é"),
]
NUMBERS = [0, -0.0, -1, 1, 0.5, 3, 1e308, -1e308, 5e-324, 1e-300, 1e-12, 1e12, 10**400, 2**63, 2**31, True, False]
JUNK = st.recursive(
    st.none() | st.sampled_from(NUMBERS) | st.sampled_from(WORDS) | st.text(max_size=6) | st.floats(allow_nan=True),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=5,
)


def places(data: Any, at: Place = ()) -> list[Place]:
    """Every place of nested data, the top first."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(p for key, value in inner for p in places(value, (*at, key)))]


def look(data: Any, place: Place) -> Any:
    """What stands at a place."""
    for part in place:
        data = data[part]
    return data


def put(data: Any, place: Place, value: Any) -> Any:
    """A copy of nested data with another value at a place."""
    if not place:
        return value
    out = copy.deepcopy(data)
    look(out, place[:-1])[place[-1]] = value
    return out


def harmed_data(seed: Any, more: list[str] | None = None) -> st.SearchStrategy[Any]:
    """Nested data with up to three harms: junk at a place, a value moved, a key lost, misspelt, added."""
    spots = [p for p in places(seed) if p]
    keys = st.sampled_from([str(p[-1]) for p in spots] + WORDS + (more or []))
    harm = st.tuples(st.sampled_from(["junk", "move", "lose", "misspell", "add"]), st.sampled_from(spots), JUNK, keys)
    return st.lists(harm, min_size=1, max_size=3).map(lambda harms: _harmed(seed, harms))


def _harmed(seed: Any, harms: list[tuple[str, Place, Any, str]]) -> Any:
    data = copy.deepcopy(seed)
    spots = [p for p in places(seed) if p]
    for kind, place, junk, key in harms:
        try:
            holder = look(data, place[:-1])
            if kind == "junk":
                holder[place[-1]] = junk
            elif kind == "move":
                holder[place[-1]] = copy.deepcopy(look(seed, spots[hash(repr(place)) % len(spots)]))
            elif kind == "lose":
                del holder[place[-1]]
            elif kind == "misspell" and isinstance(holder, dict):
                holder[f"{place[-1]}x"] = holder.pop(place[-1])
            elif isinstance(holder, dict):
                holder[key] = junk
        except (LookupError, TypeError):
            continue  # an earlier harm took the place away
    return data


_BITS = [
    b"&a ",
    b"*a",
    b"[[[[",
    b"{{",
    b"!!x",
    b"\0",
    b"\xff",
    b"\t",
    b": ",
    b"- ",
    b"<<: ",
    b"%",
    b"---\n",
    b"'",
    b'"',
]
_BITS += [
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\r",
    b",",
    b",,,,",
    b"\n",
    b"#",
    b"\xc3",
    b"\xe2\x80\xae",
    b"1e999",
    b"NaN",
    b"\\u0000",
]


def harmed_bytes(seed: bytes) -> st.SearchStrategy[bytes]:
    """A file with bytes cut out, put in or repeated, or in another encoding."""
    cut = st.tuples(
        st.integers(0, max(len(seed) - 1, 0)),
        st.integers(0, 30),
        st.binary(max_size=6) | st.sampled_from(_BITS),
        st.integers(0, 2),
    )
    whole = st.sampled_from(["as it is", "as it is", "as it is", "utf-16", "utf-8-sig", "crlf", "cr", "half", "twice"])
    return st.tuples(st.lists(cut, min_size=1, max_size=3), whole).map(lambda pair: _cut(seed, *pair))


def _cut(seed: bytes, cuts: list[tuple[int, int, bytes, int]], whole: str) -> bytes:
    raw = seed
    for at, length, new, again in cuts:
        raw = raw[:at] + new + raw[at : at + length] * again + raw[at + length :]
    ways: dict[str, Callable[[bytes], bytes]] = {
        "utf-16": lambda b: b.decode("utf-8", "replace").encode("utf-16"),
        "utf-8-sig": lambda b: b"\xef\xbb\xbf" + b,
        "crlf": lambda b: b.replace(b"\n", b"\r\n"),
        "cr": lambda b: b.replace(b"\n", b"\r"),
        "half": lambda b: b[: len(b) // 2],
        "twice": lambda b: b + b,
    }
    return ways.get(whole, lambda b: b)(raw)


def harmed_table(header: list[str], rows: list[list[str]]) -> st.SearchStrategy[bytes]:
    """A CSV with cells replaced, columns misspelt, lost, repeated or added, rows cut and repeated."""
    cells = st.sampled_from(WORDS) | st.text(max_size=6)
    row, column = st.integers(0, len(rows) - 1), st.integers(0, len(header) - 1)
    kinds = st.sampled_from(["cell", "cell", "cell", "head", "lose", "again", "swap", "short", "long", "blank"])
    harms = st.lists(st.tuples(kinds, row, column, cells), min_size=1, max_size=3)
    return harms.map(lambda found: _table(header, rows, found))


def _table(header: list[str], rows: list[list[str]], harms: list[tuple[str, int, int, str]]) -> bytes:
    lines = [list(header), *(list(row) for row in rows)]
    for kind, row, column, cell in harms:
        line = lines[1 + row]
        column %= max(min(len(line), len(lines[0])), 1)
        if not line or not lines[0]:
            continue
        if kind == "cell":
            line[column] = cell
        elif kind == "head":
            lines[0][column] = cell or f"{lines[0][column]}x"
        elif kind == "lose":
            lines = [one[:column] + one[column + 1 :] for one in lines]
        elif kind == "again":
            lines = [[*one, one[column]] if column < len(one) else one for one in lines]
        elif kind == "swap":
            line.reverse()
        elif kind == "short":
            del line[column:]
        elif kind == "long":
            line.append(cell)
        else:
            lines.insert(1, [])
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue().encode("utf-8", "surrogatepass")
