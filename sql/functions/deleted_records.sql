-- When the records of a partition between two offsets were written, which retention has deleted, and the age of the oldest
-- when its deletion was first observed: it was not older when it was deleted. Looks back some days.
create or replace function public.deleted_records(
  as_of timestamptz, days integer, of_cluster text, of_topic text, of_partition integer,
  from_offset bigint, until_offset bigint
) returns table (
  written_from timestamptz, written_until timestamptz, age_seconds double precision
) language sql stable rows 1 as $$
  -- A partition is looked up by its hour first.
  with log as materialized (
    select *
    from metrics.partition_hourly
    where cluster = of_cluster and topic = of_topic and partition = of_partition
    and hour = any(array(select as_of - make_interval(hours => n) from generate_series(0, days * 24) as n))
  ),

  written as (
    select
      min(hour) filter (where log_end_offset_first <= from_offset) as from_hour,
      max(hour) filter (where log_end_offset_last >= until_offset) + interval '1 hour' as until_hour
    from log
    where log_end_offset_last > from_offset and log_end_offset_first < until_offset
  )

  select
    w.from_hour,
    w.until_hour,
    extract(epoch from (select min(offsets_at) from log where log_start_offset > from_offset) - w.from_hour)
  from written as w
$$;
comment on function public.deleted_records is
'When the records of a partition between two offsets were written that retention has deleted, and how old they became.';
