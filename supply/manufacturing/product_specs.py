"""Which facts and series describe each accelerator; no number stands here, only fact ids and names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

__all__ = ["MEMORIES", "NODES", "SPECS", "DieSpec", "Harvest", "MemorySpec", "NodeSpec", "ProductSpec"]


@dataclass(frozen=True)
class NodeSpec:
    """Series or fact of wafer price and defect density, and the node label of the set-up and carbon facts."""

    wafer_price: str
    defect_density: str
    nm: str


NODES = {
    "n7": NodeSpec("wafer_cost_7nm_2020", "d0_n7", "7"),
    "n5": NodeSpec("tsmc_n5_wafer_price", "d0_n5", "5"),
    "n3": NodeSpec("tsmc_n3_wafer_price", "d0_n3", "3"),
    "n2": NodeSpec("tsmc_n2_wafer_price", "d0_n2", "2"),
}


@dataclass(frozen=True)
class MemorySpec:
    """One HBM generation: core die, capacity of a layer, price series and what a stack of that price holds."""

    die_area: str
    gb_per_die: str
    price: str
    price_gb: str | float
    yields: dict[int, str]


MEMORIES = {
    "hbm2e": MemorySpec(
        "asm_hbm2e_die_area",
        "asm_hbm2e_gb_per_die",
        "hbm_price_hbm3_stack",
        16.0,
        {8: "hbm_stack_yield_hbm3_8h_sk_hynix"},
    ),
    "hbm3": MemorySpec(
        "asm_hbm3_die_area",
        "asm_hbm3_gb_per_die",
        "hbm_price_hbm3_stack",
        16.0,
        {8: "hbm_stack_yield_hbm3_8h_sk_hynix"},
    ),
    "hbm3e": MemorySpec(
        "asm_hbm3e_die_area",
        "asm_hbm3e_gb_per_die",
        "hbm_price_hbm3e_stack",
        "hbm3e_12_high_share_of_hbm3e_2025",
        {8: "hbm_stack_yield_hbm3e_8h_sk_hynix", 12: "hbm_stack_yield_hbm3e_12h_sk_hynix"},
    ),
    "hbm4": MemorySpec(
        "asm_hbm4_die_area",
        "asm_hbm4_gb_per_die",
        "hbm_price_hbm4_stack",
        36.0,
        {12: "hbm_stack_yield_hbm4_12h_sk_hynix"},
    ),
}


@dataclass(frozen=True)
class Harvest:
    """Repeated blocks: facts of blocks present and blocks active, both counted over `dies` dies."""

    present: str
    active: str
    dies: int = 1


@dataclass(frozen=True)
class DieSpec:
    """One kind of die: facts of its count and area, its node, and its harvest where it has one."""

    name: str
    count: str
    area: str
    node: str
    harvest: Harvest | None = None
    stacked: bool = False


@dataclass(frozen=True)
class ProductSpec:
    """One accelerator. `stack_gb` is only given where capacity over stacks does not tell it."""

    sku: str
    name: str
    dies: tuple[DieSpec, ...]
    package: str
    packages_series: str
    memory: str
    stacks: str
    capacity: str
    reference: date
    volume: str
    flags: tuple[str, ...] = ()
    stack_gb: str | None = None
    interposer_area: str | None = None


_H100_DIES = (
    DieSpec(
        "GH100",
        "nvidia_h100_sxm5_80gb_compute_dies_per_package_2022",
        "nvidia_h100_sxm5_80gb_die_area_2022",
        "n5",
        Harvest("nvidia_gh100_sms_2022", "nvidia_h100_active_sms_2022"),
    ),
)
_BLACKWELL_HARVEST = Harvest("nvidia_blackwell_sms_2025", "nvidia_b200_active_sms_2024", 2)
_MI300_DIES = (
    DieSpec(
        "XCD",
        "amd_mi300x_compute_dies_per_package_2023",
        "amd_mi300x_xcd_die_area_2024",
        "n5",
        Harvest("asm_mi300x_cus_per_xcd", "amd_mi300x_active_cus_per_xcd_2026"),
        stacked=True,
    ),
    DieSpec("IOD", "amd_mi300x_io_dies_per_package_2025", "amd_mi300x_iod_die_area_2024", "n7"),
)
_MERCHANT, _OWN = "asm_nre_volume_merchant", "asm_nre_volume_own"
_P = "packages_per_cowos_wafer_"

_NVIDIA = (
    ProductSpec(
        "h100",
        "NVIDIA H100 SXM",
        _H100_DIES,
        "cowos_s",
        _P + "nvidia_h100",
        "hbm3",
        "nvidia_h100_sxm5_80gb_hbm_stacks_2022",
        "nvidia_h100_sxm5_80gb_memory_capacity_2022",
        date(2023, 12, 31),
        _MERCHANT,
    ),
    ProductSpec(
        "h200",
        "NVIDIA H200 SXM",
        _H100_DIES,
        "cowos_s",
        _P + "nvidia_h100",
        "hbm3e",
        "nvidia_h200_hbm_stacks_2026",
        "nvidia_h200_sxm_141gb_memory_capacity_2024_08",
        date(2024, 12, 31),
        _MERCHANT,
        ("same die and package as H100",),
    ),
    ProductSpec(
        "h20",
        "NVIDIA H20",
        _H100_DIES,
        "cowos_s",
        _P + "nvidia_h20",
        "hbm3",
        "asm_h20_stacks",
        "nvidia_h20_memory_capacity_2024_01",
        date(2024, 9, 30),
        _MERCHANT,
        ("a GH100 die with most blocks switched off: the harvest of H100 is kept, its true yield is higher",),
    ),
    ProductSpec(
        "b200",
        "NVIDIA B200",
        (
            DieSpec(
                "GB100",
                "nvidia_b200_compute_dies_per_package_2024",
                "nvidia_b200_die_area_each_2024",
                "n5",
                _BLACKWELL_HARVEST,
            ),
        ),
        "cowos_l",
        _P + "nvidia_b200",
        "hbm3e",
        "nvidia_b200_hbm_stacks_2024",
        "nvidia_b200_memory_capacity_2024",
        date(2025, 6, 30),
        _MERCHANT,
        interposer_area="tsmc_cowos_3_3x_interposer_area_2024",
    ),
    ProductSpec(
        "b300",
        "NVIDIA B300",
        (
            DieSpec(
                "GB110",
                "nvidia_b300_compute_dies_per_package_2025",
                "nvidia_b200_die_area_each_2024",
                "n5",
                _BLACKWELL_HARVEST,
            ),
        ),
        "cowos_l",
        _P + "nvidia_b300",
        "hbm3e",
        "nvidia_b300_hbm_stacks_2025",
        "nvidia_b300_memory_capacity_2025",
        date(2025, 12, 31),
        _MERCHANT,
        ("die area and active blocks taken from B200",),
        interposer_area="tsmc_cowos_3_3x_interposer_area_2024",
    ),
    ProductSpec(
        "rubin",
        "NVIDIA Rubin",
        (
            DieSpec(
                "R100",
                "nvidia_rubin_compute_dies_per_package_2026",
                "nvidia_rubin_die_area_each_2026",
                "n3",
                _BLACKWELL_HARVEST,
            ),
        ),
        "cowos_l",
        _P + "nvidia_rubin",
        "hbm4",
        "nvidia_rubin_hbm_stacks_2025_10",
        "nvidia_rubin_memory_capacity_2026_01",
        date(2026, 9, 30),
        _MERCHANT,
        ("harvest as Blackwell", "I/O dies left out: no area was found"),
        interposer_area="nvidia_rubin_interposer_area_2026",
    ),
)

_AMD = (
    ProductSpec(
        "mi300x",
        "AMD MI300X",
        _MI300_DIES,
        "cowos_s",
        _P + "amd_mi300x",
        "hbm3",
        "amd_mi300x_hbm_stacks_2023",
        "amd_mi300x_memory_capacity_2023",
        date(2024, 6, 30),
        _OWN,
        interposer_area="tsmc_cowos_3_3x_interposer_area_2024",
    ),
    ProductSpec(
        "mi325x",
        "AMD MI325X",
        _MI300_DIES,
        "cowos_s",
        _P + "amd_mi300x",
        "hbm3e",
        "asm_mi325x_stacks",
        "amd_mi325x_memory_capacity_2024",
        date(2025, 3, 31),
        _OWN,
        ("dies and package of MI300X",),
        stack_gb="asm_mi325x_stack_gb",
        interposer_area="tsmc_cowos_3_3x_interposer_area_2024",
    ),
    ProductSpec(
        "mi355x",
        "AMD MI355X",
        (
            DieSpec(
                "XCD",
                "amd_mi355x_compute_dies_per_package_2026_02",
                "amd_mi355x_die_area_each_2026_02",
                "n3",
                Harvest("amd_mi355x_cus_per_xcd_2025", "amd_mi355x_active_cus_per_xcd_2026"),
                stacked=True,
            ),
            DieSpec("IOD", "amd_mi355x_io_dies_per_package_2026_02", "asm_mi355x_iod_area", "n7"),
        ),
        "cowos_s",
        _P + "amd_mi355x",
        "hbm3e",
        "amd_mi355x_hbm_stacks_2025",
        "amd_mi355x_memory_capacity_2025_06",
        date(2025, 12, 31),
        _OWN,
        interposer_area="tsmc_cowos_3_3x_interposer_area_2024",
    ),
    ProductSpec(
        "mi450",
        "AMD MI455X",
        (
            DieSpec("XCD", "asm_mi455x_xcds", "asm_mi455x_xcd_area", "n2", stacked=True),
            DieSpec("IOD", "asm_mi455x_iods", "asm_mi455x_iod_area", "n3"),
        ),
        "cowos_l",
        _P + "amd_mi455x",
        "hbm4",
        "amd_mi455x_hbm_stacks_2026",
        "amd_mi455x_memory_capacity_2025_11",
        date(2026, 12, 31),
        _OWN,
        ("dies undisclosed: counts and areas carried over from MI355X",),
    ),
)

_CLOUD = (
    ProductSpec(
        "tpu_v5p",
        "Google TPU v5p",
        (DieSpec("compute", "asm_one_die", "asm_tpu_v5p_die_area", "n5"),),
        "cowos_s",
        _P + "google_tpu_v5p",
        "hbm2e",
        "asm_tpu_v5p_stacks",
        "google_tpu_v5p_memory_capacity_2023",
        date(2024, 6, 30),
        _OWN,
        ("node and package undisclosed: N5 class on CoWoS-S assumed", "HBM2e price and yield as HBM3 8-high"),
    ),
    ProductSpec(
        "tpu_v6e",
        "Google TPU v6e",
        (DieSpec("compute", "asm_one_die", "asm_tpu_v6e_die_area", "n5"),),
        "cowos_s",
        _P + "google_tpu_v6e",
        "hbm3",
        "asm_tpu_v6e_stacks",
        "google_tpu_v6e_memory_capacity_2024",
        date(2025, 3, 31),
        _OWN,
        ("node and package undisclosed: N5 class on CoWoS-S assumed",),
    ),
    ProductSpec(
        "tpu_v7",
        "Google TPU v7 Ironwood",
        (
            DieSpec("compute", "google_tpu_v7_ironwood_compute_dies_per_package_2025_08", "asm_tpu_v7_die_area", "n3"),
            DieSpec("I/O", "google_tpu_v7_ironwood_io_dies_2025", "asm_tpu_v7_iod_area", "n5"),
        ),
        "cowos_s",
        _P + "google_tpu_v7",
        "hbm3e",
        "google_tpu_v7_ironwood_hbm_stacks_2025_08",
        "google_tpu_v7_ironwood_memory_capacity_2025",
        date(2026, 3, 31),
        _OWN,
        ("nodes undisclosed: N3 class compute and N5 class I/O on CoWoS-S assumed",),
    ),
    ProductSpec(
        "trainium2",
        "AWS Trainium2",
        (DieSpec("compute", "aws_trainium2_compute_dies_per_package_2024", "asm_trainium2_die_area", "n5"),),
        "cowos_r",
        _P + "aws_trainium2",
        "hbm3e",
        "aws_trainium2_hbm_stacks_2024",
        "aws_trainium2_memory_capacity_2024",
        date(2025, 6, 30),
        _OWN,
        ("node undisclosed: N5 class assumed", "package is named CoWoS-S/R: R is used, at the yield of S"),
    ),
    ProductSpec(
        "trainium3",
        "AWS Trainium3",
        (DieSpec("compute", "asm_trainium3_dies", "asm_trainium3_die_area", "n3"),),
        "cowos_r",
        _P + "aws_trainium3",
        "hbm3e",
        "aws_trainium3_hbm_stacks_2025_12",
        "aws_trainium3_memory_capacity_2025_12",
        date(2026, 6, 30),
        _OWN,
        ("package as Trainium2",),
    ),
)

SPECS = {spec.sku: spec for spec in (*_NVIDIA, *_AMD, *_CLOUD)}
