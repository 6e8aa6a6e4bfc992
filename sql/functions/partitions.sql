-- Creates the partitions for a day (UTC) in every partitioned table; returns how many it created.
-- Samples (`…_sample`) have one partition per day, other tables one per month.
create or replace function public.ensure_day(day date) returns integer language plpgsql as $$
declare
  missing record;
  made integer := 0;
begin
  for missing in
    select
      n.nspname as schema_name, c.relname as parent, c.relname || to_char(span.begins, span.suffix) as child,
      span.begins at time zone 'UTC' as begins, (span.begins + span.length) at time zone 'UTC' as ends
    from pg_partitioned_table as p
    inner join pg_class as c on c.oid = p.partrelid
    inner join pg_namespace as n on n.oid = c.relnamespace
    cross join lateral (
      select day::timestamp as begins, '_YYYYMMDD' as suffix, interval '1 day' as length
      where c.relname like '%\_sample'
      union all
      select date_trunc('month', day::timestamp), '_YYYYMM', interval '1 month'
      where c.relname not like '%\_sample'
    ) as span
    where
      n.nspname in ('inventory', 'metrics', 'detect')
      and p.partdefid = 0  -- a default partition takes every row
      and to_regclass(format('%I.%I', n.nspname, c.relname || to_char(span.begins, span.suffix))) is null
    order by c.oid
  loop
    perform pg_advisory_xact_lock(hashtext('ensure_day')); -- two sessions at once would both create it, or deadlock
    execute format(
      'create table if not exists %I.%I partition of %I.%I for values from (%L) to (%L)',
      missing.schema_name, missing.child, missing.schema_name, missing.parent, missing.begins, missing.ends
    );
    made := made + 1;
  end loop;
  return made;
end
$$;
