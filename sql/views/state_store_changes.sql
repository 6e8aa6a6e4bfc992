-- Changes of the values in state stores, as the newest gathered hour sees them in the log; what breaks comes first.
create or replace view public.state_store_changes as
select
  cluster,  -- Kafka cluster
  topic,  -- Changelog topic
  path,  -- JSON path
  change,  -- type_changed, field_removed, …
  old_type,  -- Type before
  new_type,  -- Type after
  old_count,  -- Values behind the old figures
  new_count,  -- Values behind the new figures
  breaks_backward,  -- New code can't restore the old state
  breaks_forward,  -- Old code can't read the new state
  new_first_at,  -- When the new kind first came (UTC)
  hour  -- The hour (UTC)
from metrics.state_store_change_hourly
where hour = (select max(hour) from metrics.state_store_change_hourly)
order by breaks_backward desc, breaks_forward desc, topic asc, path asc;
