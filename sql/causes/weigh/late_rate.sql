-- The share of partitions that are late at a place, and in its cluster where no known cause acts.
with at_place as (
  select
    parts,
    place,
    cluster,
    sum(late) as late,
    sum(partitions) as partitions
  from group_place
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
  group by cluster
)

select
  p.parts,
  p.place,
  p.cluster,
  p.late / nullif(p.partitions, 0)::double precision as late_there,
  (c.late - a.late)::double precision / nullif(c.partitions - a.partitions, 0) as late_elsewhere
from at_place as p
inner join at_places as a on p.parts = a.parts and p.cluster = a.cluster
inner join in_cluster as c on p.cluster = c.cluster
