-- Rank of a severity: critical 1, warning 2, info 3.
create or replace function public.severity_rank(severity text) returns integer
language sql immutable parallel safe as $$
  select array_position(array['critical', 'warning', 'info'], severity)
$$;
