-- Since when a finding has been firing, to the minute, where its metrics have it.
create or replace function detect.since_of(metrics json) returns timestamptz
language sql stable as $$
  select (f.value)::timestamptz from json_each_text(metrics) as f
  where f.key ~ '(^|_)since$' and f.value is not null
  limit 1
$$;
