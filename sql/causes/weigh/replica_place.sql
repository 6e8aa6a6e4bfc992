-- Missing replicas by the broker that had them: there they lag now, or that broker gave no response.
select
  m.resource,
  public.resource_key('broker', m.cluster, r.broker_id::text) as place,
  count(*) as explained_parts
from missing_replica as m
inner join replica as r
  on
    m.cluster = r.cluster and m.topic = r.topic and m.leader <> r.broker_id
    and r.partition_bytes ? m.partition::text
    and (r.is_silent or r.partition_lags ? m.partition::text)
group by m.resource, public.resource_key('broker', m.cluster, r.broker_id::text)
