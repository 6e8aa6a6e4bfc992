/*
title: Which state stores changed their schema
subject: streams
description: >
  Changes in the schema of state store values in the newest hour, breaking ones first.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  topic: Changelog topic
  path: JSON path
  change: Kind of change
  old_type: Type before; null for a new field
  new_type: Type after; null for a removed field
  breaks_backward: Whether new code cannot restore the old state
  breaks_forward: Whether old code cannot read the new state
  new_first_at: First value of the new kind (UTC)
*/
select
  cluster,
  topic,
  path,
  change,
  old_type,
  new_type,
  breaks_backward,
  breaks_forward,
  new_first_at
from public.state_store_changes
where :cluster is null or cluster = :cluster
order by breaks_backward desc, breaks_forward desc, cluster asc, topic asc, path asc
