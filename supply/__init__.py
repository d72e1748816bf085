"""Supply: facts, manufacturing physics, the stage graph and the bottleneck optimum."""
