"""Schema drift: the tools that rows declare, against the tools that a server serves. Pure: no I/O, no HTTP.

    definitions = Definitions()
    for row in rows: definitions.add(row["responses_create_params"].get("tools"), source)
    drifts = survey(definitions, served_tools(openapi_document), executed=agent_calls_tools)

`survey` combines all offline comparisons: `compare` (a definition with a served tool), `unsound` (a definition
alone), `disagreement` (definitions of one name). A live session then tries `Drift.witness` and `Drift.counterpart`.
"""
