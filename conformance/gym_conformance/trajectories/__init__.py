"""Trajectories: what rollouts do, as plain values, with separate modules to generate, run and compare them."""
