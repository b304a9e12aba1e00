"""Trajectories: what rollouts do, as values; their generation, their execution and their comparison, each apart."""
