"""Trajectories of calls: what is allowed works, what is refused or fails leaves no trace, and what was done shows."""
