-- Whether two start times of a process are the same start. A start computed from two clocks (now minus uptime) varies with
-- the response time.
create or replace function public.is_same_start(one timestamptz, other timestamptz) returns boolean
language sql stable as $$
  select one > other - interval '1 minute' and one < other + interval '1 minute'
$$;
comment on function public.is_same_start is
'Whether two start times of a process are the same start: they differ by less than a minute.';
