-- Schema changes of state store values in the newest gathered hour, as far as the log holds the old values; breaking changes first.
create or replace view public.state_store_changes as
select
  cluster,  -- Kafka cluster
  topic,  -- Changelog topic
  path,  -- JSON path
  change,  -- type_changed, field_removed, …
  old_type,  -- Type before; null: the field did not exist
  new_type,  -- Type after; null: the field does not exist
  old_count,  -- Sampled values of the old kind
  new_count,  -- Sampled values of the new kind
  breaks_backward,  -- New code cannot restore the old state
  breaks_forward,  -- Old code cannot read the new state
  new_first_at,  -- First value of the new kind (UTC)
  hour  -- Start of the hour (UTC)
from metrics.state_store_change_hourly
where hour = (select max(hour) from metrics.state_store_change_hourly)
order by breaks_backward desc, breaks_forward desc, topic asc, path asc;
