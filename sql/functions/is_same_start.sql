-- Whether two starts of a process are one. A start that was computed from two clocks (ours less its uptime) differs by how
-- long each answer took.
create or replace function public.is_same_start(one timestamptz, other timestamptz) returns boolean
language sql stable as $$
  select one > other - interval '1 minute' and one < other + interval '1 minute'
$$;
comment on function public.is_same_start is
'Whether two starts of a process are one: they differ by less than a minute.';
