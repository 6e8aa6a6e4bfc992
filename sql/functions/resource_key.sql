-- The key of a thing, by which it is known everywhere: its kind, and what identifies it with / between. Null where any part is.
create or replace function public.resource_key(kind text, variadic parts text[]) returns text
language sql immutable parallel safe as $$
  select case when array_position(parts, null) is null then kind || ':' || array_to_string(parts, '/') end
$$;
