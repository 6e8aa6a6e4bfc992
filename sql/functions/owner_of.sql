-- Owner of the resource with this key by the config's `owners`: the first pattern that matches; null: none.
create or replace function detect.owner_of(of_key text) returns text
language sql stable as $$
  select o.owner from detect.owner as o
  where of_key ~ o.key_pattern
  order by o.position
  limit 1
$$;
