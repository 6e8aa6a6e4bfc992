-- Makes the partitions of a day (UTC) in every partitioned table; returns how many.
create or replace function public.ensure_day(day date) returns integer language plpgsql as $$
declare
  parent record;
  made integer := 0;
begin
  for parent in
    select c.oid::regclass as name, n.nspname as schema_name, c.relname
    from pg_partitioned_table as p
    inner join pg_class as c on c.oid = p.partrelid
    inner join pg_namespace as n on n.oid = c.relnamespace
  loop
    if to_regclass(format('%I.%I', parent.schema_name, parent.relname || to_char(day, '_YYYYMMDD'))) is null then
      perform pg_advisory_xact_lock(hashtext('ensure_day')); -- two at once would both make it, or wait for each other
      execute format(
        'create table if not exists %I.%I partition of %s for values from (%L) to (%L)',
        parent.schema_name, parent.relname || to_char(day, '_YYYYMMDD'), parent.name,
        day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'
      );
      made := made + 1;
    end if;
  end loop;
  return made;
end
$$;

-- Drops the daily partitions of a table before a day (UTC); returns how many.
create or replace function public.drop_days_before(parent regclass, first_kept date) returns integer language plpgsql as $$
declare
  child regclass;
  dropped integer := 0;
begin
  for child in
    select inhrelid::regclass from pg_inherits
    where inhparent = parent
      and to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') < first_kept
  loop
    execute format('drop table %s', child);
    dropped := dropped + 1;
  end loop;
  return dropped;
end
$$;
