"""The constraint families of the formulation, one module each."""
