"""Judging several servers in one run, on top of the plugin for one: summary table, xdist, Ray, and resuming."""
