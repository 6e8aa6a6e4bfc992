-- Partitions of the warehouse's tables: time range and size.
create or replace view public.partitions as
select
  n.nspname || '.' || c.relname as table_name,  -- Table
  child.oid::regclass as partition,  -- Its partition
  (bounds.span)[1]::timestamptz as begins,  -- Start of the range (UTC); null: the default partition
  (bounds.span)[2]::timestamptz as ends,  -- End of the range, exclusive (UTC)
  pg_total_relation_size(child.oid) as bytes  -- Size including indexes
from pg_inherits as i
inner join pg_class as c on i.inhparent = c.oid and c.relkind = 'p'
inner join pg_namespace as n on c.relnamespace = n.oid and n.nspname in ('inventory', 'metrics', 'detect')
inner join pg_class as child on i.inhrelid = child.oid
cross join lateral (
  select regexp_match(pg_get_expr(child.relpartbound, child.oid), 'FROM \(''(.*)''\) TO \(''(.*)''\)') as span
) as bounds;
