"""Serving software named in a row: framework and generation, the only software levels that the fit knows."""

from __future__ import annotations

import re

FRAMEWORKS: tuple[str, ...] = ("", "vLLM", "SGLang", "TensorRT-LLM")
#: Generations whose level differs from the framework's present one (see the calibration report).
GENERATIONS: tuple[str, ...] = ("", "vllm-2023", "trt-0.14", "trt-0.17", "trt-1.0", "trt-mlperf", "rocm")


def framework_of(label: str) -> str:
    """Framework behind a label; empty when unknown.

    >>> framework_of("NIM (TensorRT-LLM profile)"), framework_of("vLLM 0.9.0.2"), framework_of("TensorRT 10.11")
    ('TensorRT-LLM', 'vLLM', 'TensorRT-LLM')
    """
    text = label.lower()
    if "sglang" in text:
        return "SGLang"
    if "vllm" in text:
        return "vLLM"
    if "tensorrt" in text or "trt" in text or "nim" in text:
        return "TensorRT-LLM"
    return ""


def generation_of(label: str, version: str, vendor: str = "NVIDIA", benchmark: str = "") -> str:
    """Generation of a framework; empty for the present one.

    >>> generation_of("vLLM (Splitwise artefact)", ""), generation_of("TensorRT-LLM", "0.17")
    ('vllm-2023', 'trt-0.17')
    """
    framework = framework_of(label)
    text = label.lower()
    if vendor.upper().startswith("AMD"):
        return "rocm"
    if benchmark == "mlperf":
        return "trt-mlperf"
    if framework == "vLLM":
        found = re.match(r"0\.([0-9]+)", version)
        if "splitwise" in text or (found and int(found[1]) < 6):
            return "vllm-2023"
    if framework == "TensorRT-LLM" and "nim" not in text:
        if re.match(r"0\.(1[0-4]|[0-9])(\.|$)", version) and "post" not in version and "pre" not in version:
            return "trt-0.14"
        if re.match(r"0\.(1[5-9]|2[0-9])", version):
            return "trt-0.17"
        if version == "1.0":
            return "trt-1.0"
    return ""
