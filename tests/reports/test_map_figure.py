"""`wafer2token map --out` saves a drawing beside its table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from reports.cli.explore import map_verb


def test_map_is_saved_as_drawing_with_the_cells_of_its_table(tmp_path: Path) -> None:
    x, y = "resources.cowos.capacity", "resources.fab.capacity"
    map_verb("course_11_1", x, y, None, [], tmp_path, False, 3, "0.5,2")
    drawn, table = pd.read_csv(tmp_path / "map-1.csv"), pd.read_csv(tmp_path / "map.csv")
    name = next(c for c in table.columns if c not in ("x_scale", "y_scale", "binding"))
    assert drawn["value"].tolist() == table[name].tolist()
    assert drawn["binding"].tolist() == table["binding"].tolist()
    assert (tmp_path / "map-1.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "map-1.png").read_bytes().startswith(b"\x89PNG")
