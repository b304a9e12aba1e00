"""Environments of the archetypes that env authors copy, made with `gym_mocks.resources`.

Each module has `server()`, a fresh resources server, and `ROWS`; `SOLUTIONS` says, row by row, what a perfect
policy does at each turn.
"""
