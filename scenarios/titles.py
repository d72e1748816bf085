"""Readable names of the things in a network and of the numbers of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from supply.network import Contract, Network

__all__ = [
    "NAME_COLUMNS",
    "contract_title",
    "cost_title",
    "designer_title",
    "driver_title",
    "names_table",
    "path_title",
]

NAME_COLUMNS = ("kind", "id", "title", "stage", "designer", "region")
_DESIGNERS = {"nvidia": "NVIDIA", "amd": "AMD", "google": "Google", "aws": "AWS", "h20": "H20"}
_COSTS = {
    "power_used_of_peak": "Power reserved per accelerator, as a share of its peak rating",
    "cowos_use": "Share of CoWoS capacity in use",
    "hbm_use": "Share of HBM capacity that yields accelerator memory",
    "custom_silicon_discount": "Value of computing on in-house chips, H100 = 1",
    "cash_cost": "Cash operating cost of an H100-hour",
    "energy_load": "Mean draw of peak rating",
    "survival": "Share of the fleet kept a quarter",
    "rental": "Rental price of an H100-hour after 2026",
}
_WORDS = {
    "capacity": "capacity", "value": "value of an hour", "kw_planning": "planning power", "cost": "cost",
    "yield": "yield", "greatest_share": "largest share", "least_share": "smallest share", "survival": "survival",
    "life": "mean life", "wear_out": "wear-out shape", "opening_age": "age of the opening fleet",
    "greatest": "largest number", "least": "smallest number",
    "take_or_pay": "take-or-pay fee", "opening": "opening fleet", "reference": "reference demand",
    "holding_cost": "holding cost", "h100e": "H100-equivalents",
}  # fmt: skip

#: Short forms in the quantities of facts.
_SHORT = {"gpu": "GPU", "it": "IT", "bom": "bill of materials", "tco": "TCO"}


def designer_title(name: str) -> str:
    """Name of a designer as it is written.

    >>> designer_title("nvidia"), designer_title("acme")
    ('NVIDIA', 'Acme')
    """
    return _DESIGNERS.get(name, name[:1].upper() + name[1:])


def cost_title(name: str) -> str:
    """A shared number of the section `costs` in words, empty where it has none.

    >>> cost_title("energy_load")
    'Mean draw of peak rating'
    """
    return _COSTS.get(name, "")


def contract_title(network: Network, contract: Contract) -> str:
    """A contract as the share that it is."""
    resource = network.resources[contract.resource]
    holder = contract.id.removesuffix(f"_{contract.resource}").replace("_", " ")
    return f"{designer_title(holder)} share of {resource.title or resource.id}"


def names_table(network: Network) -> pd.DataFrame:
    """Titles of products, limits, contracts, processes, materials and regions, columns `NAME_COLUMNS`."""
    rows = [("sku", s.id, s.title or s.id, "", designer_title(s.designer), "") for s in network.fleet.values()]
    rows += [("resource", r.id, r.title or r.id, r.stage, r.owner, r.region) for r in network.resources.values()]
    rows += [
        ("contract", c.id, contract_title(network, c), network.resources[c.resource].stage, "", "")
        for c in network.contracts.values()
    ]
    rows += [("process", p.id, p.title or p.id, p.stage, p.supplier, p.region) for p in network.processes.values()]
    rows += [("material", m.id, m.title or m.id, m.stage, "", "") for m in network.materials.values()]
    rows += [("region", g.id, g.title or g.id, "", "", g.id) for g in network.regions.values()]
    return pd.DataFrame(rows, columns=list(NAME_COLUMNS))


def path_title(path: str, network: Network) -> str:
    """A path in words, with the titles of the things in it.

    >>> from supply.network_examples import course_11_1
    >>> path_title("resources.cowos.capacity", course_11_1())
    'cowos: capacity'
    """
    head, _, rest = path.partition(".")
    name, _, tail = rest.partition(".")
    if head == "costs":
        return _COSTS.get(name, name.replace("_", " ").capitalize())
    if head == "opening":
        known = network.processes.get(tail) or network.materials.get(tail)
        return f"Opening {name}: {(known.title if known else '') or tail.replace('_', ' ')}"
    if head == "demand":
        quantity = "value steps" if tail.startswith("steps") else _WORDS.get(tail, tail)
        return f"Demand of {designer_title(name)} buyers: {quantity}"
    if not rest:
        return path.replace("_", " ").capitalize()
    found: Mapping[str, Any] = {
        "resources": network.resources,
        "fleet": network.fleet,
        "processes": network.processes,
        "materials": network.materials,
    }
    item = found.get(head, {}).get(name)
    title = (item.title if item is not None else "") or name
    if head == "contracts" and name in network.contracts:
        title = contract_title(network, network.contracts[name])
    return f"{title}: {_tail_words(tail, network)}"


def _tail_words(tail: str, network: Network) -> str:
    first, _, rest = tail.partition(".")
    word = _WORDS.get(first, first.replace("_", " "))
    if first == "uses":
        return f"use of {network.resources[rest].title or rest}" if rest in network.resources else f"use of {rest}"
    if first == "opening" and rest:
        return f"{word}, {network.regions[rest].title or rest}" if rest in network.regions else f"{word}, {rest}"
    return word


def _of_subject(subject: str, quantity: str, network: Network) -> str:
    """Subject and quantity of a fact; a product has the name that the scenario gives it."""
    titles = (part for s in network.fleet.values() for part in (s.title or s.id).split(" (")[0].split(" / "))
    names = {title.lower(): title for title in titles}
    words = subject.replace("_", " ")
    what = " ".join(_SHORT.get(word, word) for word in quantity.replace("_", " ").split(" "))
    return f"{names.get(words.lower(), words)}: {what}"


def driver_title(driver: str, network: Network) -> str:
    """What an uncertain driver is: the subject and quantity of a fact or series, or its path in words."""
    from supply.facts import catalog

    kind, _, name = driver.partition(" ")
    cat = catalog()
    if kind == "fact" and name in cat:
        return _of_subject(cat[name].subject, cat[name].quantity, network)
    if kind == "series" and name in cat.series_ids:
        point = cat.series(name).points[0]
        return _of_subject(point.subject, point.quantity, network)
    if kind == "derived":
        return f"{name} (derived)".replace("_", " ")
    return path_title(driver.partition("#")[0], network)
