-- Whether a dependency leads along the chain from volumes and instances to consumer groups. The others (an instance loads its
-- volumes) lead back: who follows them reaches what a resource depends on as if it depended on the resource.
create or replace function public.leads_along(basis text) returns boolean language sql immutable as $$
  select basis <> all(array['uses', 'loads', 'runs as', 'reads for', 'has topics on'])
$$;
comment on function public.leads_along is
'Whether a dependency (basis of resource_link) leads along the chain from volumes and instances to consumer groups, not back.';
