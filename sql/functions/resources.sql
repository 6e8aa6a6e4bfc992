-- Resources seen in the 24 hours that end with an hour: key, name, and owner. Owner: the resource's own tag, otherwise the
-- config's `owners`, otherwise the labels of its pod or Strimzi resource, otherwise the resource that it belongs to.
create or replace function public.resources(as_of timestamptz) returns table (
  kind text, key text, name text, cluster text, application text, owner text, seen_hour timestamptz
) language sql stable as $$
  -- One index lookup per cluster and hour, because each cluster has thousands of topics.
  with recursive topics_of as (
    (
      select hour, cluster from inventory.topic_hourly
      where hour > as_of - interval '24 hours' and hour <= as_of
      order by hour, cluster
      limit 1
    )
    union all
    select further.hour, further.cluster
    from topics_of as t
    cross join lateral (
      select h.hour, h.cluster from inventory.topic_hourly as h
      where h.hour >= t.hour and h.hour <= as_of and (h.hour, h.cluster) > (t.hour, t.cluster)
      order by h.hour, h.cluster
      limit 1
    ) as further
  ),

  instance as materialized (
    select * from public.instances_seen(as_of)
  ),

  instance_owner as (
    select
      instance_id,
      min(coalesce(owner, detect.owner_of(public.resource_key('instance', account, region, instance_id)))) as owner,
      min(application) as application
    from instance
    group by instance_id
  ),

  process as materialized (
    select * from public.processes_seen(as_of)
  ),

  pod as materialized (
    select distinct on (cluster, endpoint) cluster, endpoint, pod, owner
    from inventory.pod_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of and endpoint is not null
    order by cluster, endpoint, hour desc, pod
  ),

  strimzi as materialized (
    select cluster, kind, coalesce(kafka_name, name) as name, read_groups, max(owner) as owner
    from inventory.strimzi_resource_hourly
    where hour = as_of and owner is not null and kind in ('Kafka', 'KafkaTopic', 'KafkaUser')
    group by cluster, kind, coalesce(kafka_name, name), read_groups
  ),

  -- An application other than Kafka Streams has the name from the config.
  application as materialized (
    select
      p.cluster,
      coalesce(p.application_id, p.app) as application_id,
      coalesce(
        detect.owner_of(public.resource_key('application', p.cluster, coalesce(p.application_id, p.app))), min(o.owner),
        min(i.owner)
      ) as owner,
      max(p.hour) as hour
    from process as p
    left join pod as o using (cluster, endpoint)
    left join instance_owner as i using (instance_id)
    group by p.cluster, coalesce(p.application_id, p.app)
  )

  select 'volume', k.key, case when v.name is null then v.volume_id else v.volume_id || ' (' || v.name || ')' end, null,
    coalesce(v.application, p.application_id, p.app, i.application),
    coalesce(v.owner, detect.owner_of(k.key), c.claim_owner, i.owner), v.hour
  from public.volumes_seen(as_of) as v
  cross join lateral (select public.resource_key('volume', v.account, v.region, v.volume_id) as key) as k
  left join instance_owner as i using (instance_id)
  left join inventory.pod_volumes(as_of) as c using (volume_id)
  left join process as p on c.claim_cluster = p.cluster and c.claim_endpoint = p.endpoint

  union all
  select 'instance', k.key, case when i.name is null then i.instance_id else i.instance_id || ' (' || i.name || ')' end, null,
    i.application, coalesce(i.owner, detect.owner_of(k.key)), i.hour
  from instance as i
  cross join lateral (select public.resource_key('instance', i.account, i.region, i.instance_id) as key) as k

  union all
  -- Interchangeable instances: an Auto Scaling group, otherwise those with the same tag application, otherwise a single one.
  select 'instances', k.key, m.instance_group, null, m.application, coalesce(m.owner, detect.owner_of(k.key)), m.hour
  from (
    select
      h.account,
      h.region,
      h.instance_group,
      min(h.application) as application,
      min(i.owner) as owner,
      max(h.hour) as hour
    from metrics.instance_health_hourly as h
    left join instance_owner as i using (instance_id)
    where h.hour > as_of - interval '24 hours' and h.hour <= as_of
    group by h.account, h.region, h.instance_group
  ) as m
  cross join lateral (select public.resource_key('instances', m.account, m.region, m.instance_group) as key) as k

  union all
  -- A host is identified by the address of its node exporter.
  select 'host', k.key,
    m.cluster || ' host ' || coalesce(m.instance_id, substring(m.endpoint from '://([^/]+)'), m.endpoint), m.cluster,
    i.application, coalesce(detect.owner_of(k.key), i.owner), m.hour
  from (
    select distinct on (cluster, endpoint) cluster, endpoint, instance_id, hour
    from metrics.node_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    order by cluster, endpoint, hour desc
  ) as m
  cross join lateral (select public.resource_key('host', m.cluster, m.endpoint) as key) as k
  left join instance_owner as i using (instance_id)

  union all
  select 'cluster', k.key, c.cluster, c.cluster, null, coalesce(detect.owner_of(k.key), s.owner), c.hour
  from (
    select cluster, max(hour) as hour
    from (
      select distinct cluster, hour from metrics.broker_hourly where hour > as_of - interval '24 hours' and hour <= as_of
      union all
      select distinct cluster, hour from inventory.consumer_group_hourly
      where hour > as_of - interval '24 hours' and hour <= as_of
      union all
      select cluster, hour from topics_of
    ) as seen
    group by cluster
  ) as c
  cross join lateral (select public.resource_key('cluster', c.cluster) as key) as k
  left join strimzi as s on c.cluster = s.cluster and s.kind = 'Kafka'

  union all
  select 'broker', k.key, b.cluster || ' broker ' || b.broker, b.cluster, null,
    coalesce(detect.owner_of(k.key), o.owner, i.owner), b.hour
  from (
    select distinct on (cluster, coalesce(broker_id::text, endpoint))
      cluster, coalesce(broker_id::text, endpoint) as broker, endpoint, instance_id, hour
    from metrics.broker_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    order by cluster, coalesce(broker_id::text, endpoint), hour desc
  ) as b
  cross join lateral (select public.resource_key('broker', b.cluster, b.broker) as key) as k
  left join pod as o on b.cluster = o.cluster and b.endpoint = o.endpoint
  left join instance_owner as i using (instance_id)

  union all
  select 'topic', k.key, t.cluster || '/' || t.topic, t.cluster, t.application_id,
    coalesce(detect.owner_of(k.key), s.owner, a.owner), t.hour
  from public.topics_seen(as_of) as t
  cross join lateral (select public.resource_key('topic', t.cluster, t.topic) as key) as k
  left join application as a using (cluster, application_id)
  left join strimzi as s on t.cluster = s.cluster and s.kind = 'KafkaTopic' and t.topic = s.name

  union all
  select 'group', k.key, g.cluster || '/' || g.group_id, g.cluster, a.application_id,
    coalesce(detect.owner_of(k.key), a.owner, u.owner), g.hour
  from (
    select cluster, group_id, max(hour) as hour
    from (
      select cluster, group_id, hour from metrics.consumer_group_hourly
      where hour > as_of - interval '24 hours' and hour <= as_of
      union all
      select cluster, group_id, hour from metrics.msk_consumer_lag_hourly
      where hour > as_of - interval '24 hours' and hour <= as_of
    ) as known
    group by cluster, group_id
  ) as g
  cross join lateral (select public.resource_key('group', g.cluster, g.group_id) as key) as k
  left join application as a on g.cluster = a.cluster and g.group_id = a.application_id
  -- The one user that may read the group; of several, no one is the owner.
  left join lateral (
    select min(s.owner) as owner
    from strimzi as s
    cross join jsonb_array_elements(s.read_groups::jsonb) as acl
    where s.kind = 'KafkaUser' and s.cluster = g.cluster
      and (
        g.group_id = acl ->> 0
        or ((acl -> 1)::boolean and acl ->> 0 <> '*' and starts_with(g.group_id, acl ->> 0))
      )
    having count(distinct s.owner) = 1
  ) as u on true

  union all
  select 'connector', k.key, c.cluster || '/' || c.connect_cluster || '/' || c.connector, c.cluster, null,
    coalesce(detect.owner_of(k.key), detect.owner_of(public.resource_key('group', c.cluster, c.group_id))), c.hour
  from (
    select distinct on (cluster, connect_cluster, connector) cluster, connect_cluster, connector, group_id, hour
    from inventory.connector_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    order by cluster, connect_cluster, connector, hour desc
  ) as c
  cross join lateral (select public.resource_key('connector', c.cluster, c.connect_cluster, c.connector) as key) as k

  union all
  -- A group on a topic, in this hour.
  select 'reading', k.key, r.cluster || '/' || r.topic || ' as read by ' || r.group_id, r.cluster, a.application_id,
    coalesce(detect.owner_of(k.key), detect.owner_of(public.resource_key('group', r.cluster, r.group_id)), a.owner), as_of
  from (
    select distinct cluster, topic, group_id from metrics.consumer_partition_hourly where hour = as_of
  ) as r
  cross join lateral (select public.resource_key('reading', r.cluster, r.topic, r.group_id) as key) as k
  left join application as a on r.cluster = a.cluster and r.group_id = a.application_id

  union all
  -- A client that brokers expose, in this hour; where its JVM is read, it belongs to that application.
  select 'client', k.key, c.cluster || '/' || c.client_id, c.cluster, c.application_id,
    coalesce(detect.owner_of(k.key), a.owner), as_of
  from (
    select f.cluster, f.client_id, min(coalesce(p.application_id, o.app)) as application_id
    from (
      select distinct cluster, labels::jsonb ->> 'client' as client_id
      from metrics.broker_sample
      where hour = as_of and metric = 'client_fetch_bytes_per_second'
    ) as f
    left join metrics.client_hourly as o
      on o.hour = as_of and f.cluster = o.cluster and f.client_id = o.client_id and o.kind = 'consumer'
    left join process as p on o.cluster = p.cluster and o.endpoint = p.endpoint
    where f.client_id <> ''
    group by f.cluster, f.client_id
  ) as c
  cross join lateral (select public.resource_key('client', c.cluster, c.client_id) as key) as k
  left join application as a using (cluster, application_id)

  union all
  select 'application', public.resource_key('application', a.cluster, a.application_id), a.cluster || '/' || a.application_id,
    a.cluster, a.application_id, a.owner, a.hour
  from application as a

  union all
  select 'process', k.key,
    -- A node of Kubernetes runs several pods, so the pod names the process.
    p.cluster || '/' || p.app || ' on '
    || coalesce(o.pod, p.instance_id, substring(p.endpoint from '://([^/]+)'), p.endpoint),
    p.cluster, coalesce(p.application_id, p.app), coalesce(detect.owner_of(k.key), o.owner, i.owner, a.owner), p.hour
  from process as p
  cross join lateral (select public.resource_key('process', p.cluster, p.endpoint) as key) as k
  left join pod as o on p.cluster = o.cluster and p.endpoint = o.endpoint
  left join instance_owner as i using (instance_id)
  left join application as a on p.cluster = a.cluster and coalesce(p.application_id, p.app) = a.application_id

  union all
  select 'store', k.key, s.cluster || '/' || s.topic, s.cluster, s.application_id,
    coalesce(detect.owner_of(k.key), a.owner), s.hour
  from public.stores_seen(as_of) as s
  cross join lateral (select public.resource_key('store', s.cluster, s.topic) as key) as k
  left join application as a using (cluster, application_id)
$$;
