"""Several servers in one run, on top of the plugin of one: a table of them all, xdist, Ray, and resuming."""
