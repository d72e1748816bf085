"""Economics: the per-token performance engine and the prices that follow from it."""
