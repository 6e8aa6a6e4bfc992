-- Partitions of each consumer group by place: led by a broker (`leader`), or owned by members on an instance or in the
-- process of a pod (`member`).
-- Counted first and keyed afterwards: a key for each of all partitions takes longer than everything else.
with led as materialized (
  select
    cluster,
    group_id,
    leader,
    count(*) as partitions,
    count(*) filter (where is_late) as late,
    sum(records) as records
  from group_partition
  group by cluster, group_id, leader
),

leader as materialized (
  select
    cluster,
    leader,
    public.resource_key('broker', cluster, leader::text) as place
  from (
    select distinct
      cluster,
      leader
    from led
  ) as one
)

select
  parts,
  cluster,
  public.resource_key('group', cluster, group_id) as resource,
  place,
  partitions,
  late,
  records
from (
  select
    'leader' as parts,
    d.cluster,
    d.group_id,
    l.place,
    d.partitions,
    d.late,
    d.records
  from led as d
  inner join leader as l on d.cluster = l.cluster and d.leader = l.leader
  union all
  select
    'member',
    cluster,
    group_id,
    member,
    count(*),
    count(*) filter (where is_late),
    sum(records)
  from group_partition
  where member is not null
  group by cluster, group_id, member
  union all
  select
    'member',
    cluster,
    group_id,
    process,
    count(*),
    count(*) filter (where is_late),
    sum(records)
  from group_partition
  where process is not null
  group by cluster, group_id, process
) as one
where place = any(array(select distinct p.place from place as p))
