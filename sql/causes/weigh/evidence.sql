-- What is known of each pair: shares, the probability of coincidence, peers, timing, and the measured amount.
with joint as (
  -- What all places of a mechanism explain together: two slow brokers share the missing replicas.
  select
    effect,
    mechanism,
    sum(explained_parts) as explained_parts,
    max(explained_parts) as largest
  from (
    select distinct
      effect,
      mechanism,
      place,
      explained_parts
    from pair
    where parts not in ('resource', 'named')
  ) as one
  group by effect, mechanism
)

select
  p.*,
  m.least_share,
  m.contributes,
  m.alone,
  p.explained_parts::double precision / nullif(p.affected_parts, 0) as explained_share,
  j.explained_parts::double precision / nullif(p.affected_parts, 0) as joint_share,
  p.explained_parts = j.largest as is_largest,
  p.parts_there::double precision / nullif(p.all_parts, 0) as expected_share,
  public.coincidence_probability(p.explained_parts, p.affected_parts, p.parts_there, p.all_parts) as coincidence,
  l.late_there,
  l.late_elsewhere,
  n.affected_there,
  n.healthy_there,
  n.healthy_weight,
  n.peers_coincidence,
  n.affected_elsewhere,
  n.healthy_elsewhere,
  p.seen_hour < :hour as is_outdated,
  p.cause_since > p.effect_since + :start_tolerance_minutes * interval '1 minute'
  or p.cause_began > p.effect_began + :start_tolerance_hours * interval '1 hour' as is_later,
  p.cause_hour < least(p.effect_began, date_trunc('hour', p.effect_since, 'UTC')) - m.within_hours * interval '1 hour' as is_too_early,
  reads.share * coalesce((p.cause_metrics ->> 'unaccounted_of_excess_percent')::double precision / 100, 0) as amount
from pair as p
inner join mechanism as m on p.mechanism = m.mechanism
left join joint as j on p.mechanism = j.mechanism and p.effect = j.effect
left join peer as n on p.mechanism = n.mechanism and p.cause = n.cause and p.detector = n.detector
left join late_rate as l on p.parts = l.parts and p.place = l.place and p.cluster = l.cluster
left join lateral (
  select coalesce(sum(v.read_bytes) / nullif(sum(v.read_bytes + v.write_bytes), 0), 0) as share
  from metrics.volume_sample as v
  where
    m.amount = 'reads' and v.at >= :hour and v.at < :hour + interval '1 hour'
    and v.account = p.identity ->> 'account'
    and v.region = p.identity ->> 'region' and v.volume_id = p.identity ->> 'volume_id'
) as reads on m.amount = 'reads'
