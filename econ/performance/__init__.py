"""The per-token performance engine: hardware, architectures, formats, memory, operators, serving, energy and search."""
