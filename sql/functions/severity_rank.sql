-- The place of a severity in order, 1 the worst: critical, warning, info.
create or replace function public.severity_rank(severity text) returns integer
language sql immutable parallel safe as $$
  select array_position(array['critical', 'warning', 'info'], severity)
$$;
