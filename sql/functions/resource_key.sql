-- Key of a resource, the same everywhere: its kind, and the parts that identify it, joined with /. Null where any part is null.
create or replace function public.resource_key(kind text, variadic parts text[]) returns text
language sql immutable parallel safe as $$
  select case when num_nulls(variadic parts) = 0 then kind || ':' || array_to_string(parts, '/') end
$$;
