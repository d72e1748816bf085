"""The bottleneck optimum: one Pyomo formulation, compiled once into a persistent HiGHS model."""
