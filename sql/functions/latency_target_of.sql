-- How soon an application of this key is to have processed a record, by the config's `latency_targets`: the first
-- pattern that matches; null: nobody has said.
create or replace function detect.latency_target_of(of_key text) returns double precision
language sql stable as $$
  select t.seconds from detect.latency_target as t
  where of_key ~ t.key_pattern
  order by t.position
  limit 1
$$;
