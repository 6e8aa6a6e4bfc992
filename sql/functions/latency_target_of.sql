-- Latency target in seconds of the application with this key, by the config's `latency_targets`: the first pattern that
-- matches; null: none.
create or replace function detect.latency_target_of(of_key text) returns double precision
language sql stable as $$
  select t.seconds from detect.latency_target as t
  where of_key ~ t.key_pattern
  order by t.position
  limit 1
$$;
