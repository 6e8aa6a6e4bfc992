-- Which partitions a member had when it left: a record that throws its readers out of the group shows by that.
comment on column metrics.group_step_hourly.gone is
'Members of the generation before that are gone, a JSON list of {client_id, host, assignment}, with the partitions that '
'they had by topic (left out where it can''t be read); null: unknown';
