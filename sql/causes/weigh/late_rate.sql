-- The share of partitions that are late at a place, and in its cluster where no known cause acts. Groups that are late for
-- another reason, such as dead threads, do not count.
with otherwise_explained as (
  select distinct e.resource
  from explained as e
  inner join mechanism as m on e.mechanism = m.mechanism
  where m.parts not in ('leader', 'member')
),

at_place as (
  select
    parts,
    place,
    cluster,
    sum(late) as late,
    sum(partitions) as partitions
  from group_place
  where resource <> all(array(select o.resource from otherwise_explained as o))
  group by parts, place, cluster
),

at_places as (
  select
    parts,
    cluster,
    sum(late) as late,
    sum(partitions) as partitions
  from at_place
  group by parts, cluster
),

in_cluster as (
  select
    cluster,
    sum(late) as late,
    sum(partitions) as partitions
  from group_total
  where resource <> all(array(select o.resource from otherwise_explained as o))
  group by cluster
)

select
  p.parts,
  p.place,
  p.cluster,
  p.late / nullif(p.partitions, 0)::double precision as late_there,
  greatest(c.late - a.late, 0)::double precision / nullif(greatest(c.partitions - a.partitions, 0), 0) as late_elsewhere
from at_place as p
inner join at_places as a on p.parts = a.parts and p.cluster = a.cluster
inner join in_cluster as c on p.cluster = c.cluster
