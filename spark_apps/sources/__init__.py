"""Sources: Spark data sources that know a protocol and nothing of our tables.

The contract: every row carries `resource` (what was asked, for people) and `gap`. `gap` is null on a row of data. What
could not be had is a row too: its data columns are null and `gap` reads `<status>: <reason>`, with the status `refused`
(an error, a time-out, no permission), `late` (not settled yet) or `missing` (the other side doesn't have it). A source
raises only for mistakes in its options; it never drops a resource in silence, and one bad resource spoils no other.
"""
