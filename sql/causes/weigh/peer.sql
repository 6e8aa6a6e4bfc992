-- How peers of the effect fare by the same detector: those exposed to the place of the cause, and those elsewhere in the
-- cluster. A cause is more likely if exposed peers fire and the others do not.
with exposed as materialized (
  select
    mechanism,
    cause,
    detector,
    resource
  from explained
  union
  select
    q.mechanism,
    q.cause,
    q.detector,
    g.resource
  from (
    select distinct
      mechanism,
      cause,
      detector,
      place,
      parts
    from pair
    where parts in ('leader', 'member')
  ) as q
  inner join group_place as g on q.parts = g.parts and q.place = g.place
  inner join group_total as t on g.resource = t.resource
  where g.partitions >= :exposed_share * t.partitions
  union
  select
    q.mechanism,
    q.cause,
    q.detector,
    p.place
  from (
    select distinct
      mechanism,
      cause,
      detector
    from pair
    where parts = 'resource'
  ) as q
  inner join place as p on q.mechanism = p.mechanism and q.cause = p.cause
),

evaluated as materialized (
  select
    detector,
    resource,
    fingerprint,
    identity ->> 'cluster' as cluster,
    status = 'firing' as is_affected
  from detect.evaluation
  where hour = :hour and status in ('firing', 'ok') and detector = any(array(select distinct p.detector from pair as p))
),

-- How much each consumer group reads at the places of a cause.
reading as (
  select
    q.mechanism,
    q.cause,
    q.detector,
    g.resource,
    sum(g.partitions) as partitions,
    sum(g.records) as records
  from (
    select distinct
      mechanism,
      cause,
      detector,
      place,
      parts
    from pair
    where parts in ('leader', 'member')
  ) as q
  inner join group_place as g on q.parts = g.parts and q.place = g.place
  group by q.mechanism, q.cause, q.detector, g.resource
),

peer_there as (
  select
    mechanism,
    cause,
    detector,
    count(*) filter (where is_affected) as affected_there,
    count(*) filter (where not is_affected) as healthy_there,
    -- A healthy peer that reads less there than the affected ones has less to show.
    coalesce(
      sum(
        least(1, coalesce(records / nullif(affected_records, 0), partitions / affected_partitions, 1)::double precision)
      ) filter (where not is_affected),
      0
    ) as healthy_weight
  from (
    select
      x.mechanism,
      x.cause,
      x.detector,
      v.is_affected,
      r.partitions,
      r.records,
      avg(r.partitions) filter (where v.is_affected) over of_cause as affected_partitions,
      avg(r.records) filter (where v.is_affected) over of_cause as affected_records
    from exposed as x
    inner join evaluated as v on x.detector = v.detector and x.resource = v.resource
    left join reading as r
      on x.mechanism = r.mechanism and x.cause = r.cause and x.detector = r.detector and x.resource = r.resource
    window of_cause as (partition by x.mechanism, x.cause, x.detector)
  ) as one
  group by mechanism, cause, detector
),

peer_elsewhere as (
  select
    q.mechanism,
    q.cause,
    q.detector,
    count(distinct v.resource) filter (where v.is_affected and x.resource is null and o.effect is null)
      as affected_elsewhere,
    count(distinct v.resource) filter (where not v.is_affected and x.resource is null) as healthy_elsewhere
  from (
    select distinct
      mechanism,
      cause,
      detector,
      cluster
    from pair
    where cluster is not null
  ) as q
  inner join evaluated as v on q.detector = v.detector and q.cluster = v.cluster
  left join exposed as x
    on q.mechanism = x.mechanism and q.cause = x.cause and q.detector = x.detector and v.resource = x.resource
  -- What another cause explains, or this one by another mechanism, is no evidence against this one. What this one explains
  -- by this mechanism is exposed to it.
  left join explained as o on v.fingerprint = o.effect
  group by q.mechanism, q.cause, q.detector
)

select
  mechanism,
  cause,
  detector,
  t.affected_there,
  t.healthy_there,
  t.healthy_weight,
  e.affected_elsewhere,
  e.healthy_elsewhere,
  public.coincidence_probability(
    t.affected_there, t.affected_there + e.affected_elsewhere, t.affected_there + t.healthy_there,
    t.affected_there + t.healthy_there + e.affected_elsewhere + e.healthy_elsewhere
  ) as peers_coincidence
from peer_there as t
full join peer_elsewhere as e using (mechanism, cause, detector)
