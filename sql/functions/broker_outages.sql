-- Starts of brokers since the previous hour listed them, and the silence before: the minutes up to the start in which the
-- volumes of the instance took no writes, or its network was idle, against the median of the hour before.
create or replace function public.broker_outages(of_hour timestamptz, quiet_ratio double precision) returns table (
  cluster text, broker_id integer,
  started_at timestamptz,                      -- start of the JVM
  last_listed_at timestamptz,                  -- when the cluster listed the broker for the hour before
  down_since timestamptz,                      -- end of the last period with traffic; null: none is known, or no silence
  known_until timestamptz                      -- end of the silence, or of what is known of it
) language sql stable as $$
  with started as materialized (
    select b.cluster, b.broker_id, b.endpoint, b.instance_id, b.process_started_at as started_at, l.observed_at as listed_at
    from metrics.broker_hourly as b
    inner join inventory.broker_hourly as l
      on l.hour = of_hour - interval '1 hour' and b.cluster = l.cluster and b.broker_id = l.broker_id and l.is_listed
    where b.hour = of_hour and b.samples is not null and b.process_started_at > l.observed_at
  ),

  traffic as (
    select s.cluster, s.broker_id, 'volumes' as basis, p.at, p.period_seconds, sum(p.write_bytes) as bytes
    from started as s
    inner join inventory.used_volumes(of_hour) as v on s.cluster = v.cluster and s.endpoint = v.endpoint
    inner join metrics.volume_sample as p
      on v.account = p.account and v.region = p.region and v.volume_id = p.volume_id
    where p.at >= of_hour - interval '1 hour' and p.at < of_hour + interval '1 hour'
    group by s.cluster, s.broker_id, p.at, p.period_seconds
    union all
    select s.cluster, s.broker_id, 'network', p.at, p.period_seconds, p.in_bytes + p.out_bytes
    from started as s
    inner join inventory.instance_hourly as i on i.hour = of_hour and s.instance_id = i.instance_id
    inner join metrics.instance_network_sample as p
      on i.account = p.account and i.region = p.region and i.instance_id = p.instance_id
    where p.at >= of_hour - interval '1 hour' and p.at < of_hour + interval '1 hour'
  ),

  baseline as (
    select cluster, broker_id, basis, percentile_cont(0.5) within group (order by bytes / period_seconds) as rate
    from traffic
    where at < of_hour
    group by cluster, broker_id, basis
  ),

  -- The period in which the broker started again is not one of silence.
  silence as (
    select t.cluster, t.broker_id, t.basis, max(p.until) as known_until,
      max(p.until) filter (where t.bytes / t.period_seconds >= quiet_ratio * u.rate) as down_since
    from traffic as t
    inner join baseline as u using (cluster, broker_id, basis)
    inner join started as s using (cluster, broker_id)
    cross join lateral (select t.at + make_interval(secs => t.period_seconds) as until) as p
    where p.until <= s.started_at and u.rate > 0
    group by t.cluster, t.broker_id, t.basis
  )

  -- The shortest silence: what the volumes wrote, the broker may have written.
  select distinct on (s.cluster, s.broker_id)
    s.cluster, s.broker_id, s.started_at, s.listed_at,
    case when q.down_since < q.known_until and q.down_since > s.listed_at - interval '5 minutes' then q.down_since end,
    q.known_until
  from started as s
  left join silence as q using (cluster, broker_id)
  order by s.cluster asc, s.broker_id asc, q.known_until - q.down_since asc nulls last, q.basis desc
$$;
comment on function public.broker_outages is
'Starts of brokers since the previous hour listed them, with the silence of their volumes or network before.';
