-- All partitions of each consumer group, and the late ones among them.
select
  public.resource_key('group', cluster, group_id) as resource,
  cluster,
  partitions,
  late
from (
  select
    cluster,
    group_id,
    count(*) as partitions,
    count(*) filter (where is_late) as late
  from group_partition
  group by cluster, group_id
) as counted
