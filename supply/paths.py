"""Where the data files are: `supply/_data` in an installed wheel, `data/` in a checkout."""

from __future__ import annotations

from pathlib import Path

__all__ = ["data_dir", "data_file"]


def data_dir() -> Path:
    """Return the folder that holds the facts, models, calibration and checks.

    Raises:
        FileNotFoundError: when neither an installed nor a checked-out data folder exists.
    """
    here = Path(__file__).resolve().parent
    for folder in (here / "_data", here.parent / "data"):
        if (folder / "facts").is_dir():
            return folder
    raise FileNotFoundError(f"no data folder beside {here}: reinstall wafer2token, or run it from a full checkout")


def data_file(*parts: str) -> Path:
    """Return the path of a data file, e.g. `data_file("facts", "hbm.csv")`.

    Raises:
        FileNotFoundError: when the file does not exist; the message names the folder searched.
    """
    path = data_dir().joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{'/'.join(parts)} is not in the data folder {data_dir()}")
    return path
