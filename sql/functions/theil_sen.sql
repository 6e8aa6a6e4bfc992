-- Theil-Sen slope of hourly values, per hour: the median of the slopes between any two hours. Up to 29 % of the hours may
-- be outliers, where least squares follows each burst and a difference of two points follows their noise. Hours with null
-- do not count. Null: fewer than three hours are known. Run time grows with the square of the hours: a week takes some
-- 10 ms, so use it for few series, or for daily medians.
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
'Theil-Sen slope of hourly values, per hour: the median of the slopes between any two hours. Null: fewer than three hours are known.';
