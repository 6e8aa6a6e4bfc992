-- The slope of a figure per hour by Theil and Sen: the median of the slopes between any two of its hours. Up to 29 % of
-- the hours may lie anywhere and it holds, where least squares follows each burst and two points follow their noise.
-- Hours whose value is null don't count. Null: fewer than three hours are known. Time grows with the square of the hours:
-- a week's take some 10 ms, so ask it for those that matter, or of daily medians.
create or replace function public.theil_sen(hours timestamptz[], amounts double precision[]) returns double precision
language sql stable parallel safe as $$
  with known as materialized (
    select extract(epoch from at)::double precision / 3600 as x, amount as y
    from unnest(hours, amounts) as known (at, amount)
    where at is not null and amount is not null
  )

  select percentile_cont(0.5) within group (order by (b.y - a.y) / (b.x - a.x))
  from known as a
  inner join known as b on a.x < b.x
  having (select count(*) from known) >= 3
$$;
comment on function public.theil_sen is
'The slope of a figure per hour: the median of the slopes between any two of its hours (Theil, Sen). Null: fewer than three are known.';
