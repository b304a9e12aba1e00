"""Schema drift: the tools that rows declare, against the tools that a server serves. Pure: no I/O, no HTTP.

    definitions = Definitions()
    for row in rows: definitions.add(row["responses_create_params"].get("tools"), source)
    drifts = survey(definitions, served_tools(openapi_document), executed=agent_calls_tools)

`survey` is everything that can be said offline: `compare` (one definition, one served tool), `unsound` (a definition
alone), `disagreement` (definitions of one name). A live session then tries `Drift.witness` beside `Drift.counterpart`.
"""
