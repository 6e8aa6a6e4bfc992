"""Sources: Spark data sources that implement a protocol and do not depend on the warehouse's tables.

The contract: every row has `resource` (the name of what was queried) and `gap`. `gap` is null on a row of data. Data
that could not be read is a row too: its data columns are null and `gap` is `<status>: <message>`, with the status
`failed` (an error, a timeout, no permission), `late` (not complete yet), or `missing` (the source does not have
it). A source raises only for errors in its options; it never drops a resource silently, and one faulty resource does
not affect others.
"""
