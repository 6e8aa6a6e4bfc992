-- Dependencies between resources in an hour: a fault of the upstream resource can affect the downstream one. A resource
-- that did not respond in the hour keeps its links from its latest response, at most 24 hours before, as `seen_hour` shows.
create or replace function public.resource_links(as_of timestamptz) returns table (
  upstream text, downstream text, basis text, seen_hour timestamptz
) language sql stable as $$
  with claimed as materialized (
    select
      volume_id,
      case claim_role
        when 'broker' then public.resource_key('broker', claim_cluster, claim_broker_id::text)
        else public.resource_key('process', claim_cluster, claim_endpoint)
      end as claimant
    from inventory.pod_volumes(as_of)
    where claim_cluster is not null
      and case claim_role when 'broker' then claim_broker_id is not null else claim_endpoint is not null end
  ),

  volume as materialized (
    select
      v.account, v.region, v.volume_id, v.instance_id, v.hour, c.claimant,
      public.resource_key('volume', v.account, v.region, v.volume_id) as key
    from (
      select distinct on (account, region, volume_id) account, region, volume_id, instance_id, hour
      from inventory.volume_hourly
      where hour > as_of - interval '24 hours' and hour <= as_of
      order by account, region, volume_id, hour desc
    ) as v
    left join claimed as c using (volume_id)
  ),

  instance as materialized (
    select distinct on (account, region, instance_id) account, region, instance_id, private_ip, private_dns, hour
    from inventory.instance_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    order by account, region, instance_id, hour desc
  ),

  -- A broker that does not respond keeps the id and the instance that it reported last.
  broker as (
    select
      cluster,
      coalesce((array_agg(broker_id order by hour desc) filter (where broker_id is not null))[1]::text, endpoint)
        as broker,
      (array_agg(instance_id order by hour desc) filter (where instance_id is not null))[1] as instance_id,
      coalesce(max(hour) filter (where broker_id is not null), max(hour)) as hour
    from metrics.broker_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by cluster, endpoint
  ),

  process as materialized (
    select
      cluster,
      endpoint,
      coalesce((array_agg(application_id order by hour desc) filter (where application_id is not null))[1], min(app))
        as application_id,
      bool_or(application_id is not null) as is_streams,
      (array_agg(instance_id order by hour desc) filter (where instance_id is not null))[1] as instance_id,
      coalesce(max(hour) filter (where application_id is not null), max(hour)) as hour
    from metrics.jvm_app_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by cluster, endpoint
  ),

  -- A cluster without readable groups keeps its latest groups.
  members_known as (
    select cluster, max(hour) as hour
    from inventory.consumer_member_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by cluster
  ),

  machine_of_broker as (
    select i.account, i.region, i.instance_id, b.cluster, b.broker, b.hour
    from broker as b
    inner join instance as i using (instance_id)
  ),

  -- Rows of partitions and topics are made distinct before they get keys: a link has up to a hundred of them.
  reading as (
    select distinct cluster, topic, group_id
    from metrics.consumer_partition_hourly
    where hour = as_of
  )

  select key, public.resource_key('instance', account, region, instance_id), 'attached', hour
  from volume
  where instance_id is not null and claimant is null

  union all
  -- A node of Kubernetes has volumes of many pods. One that a pod claims affects that pod, not others on its node.
  select public.resource_key('instance', account, region, instance_id), key,
    case when claimant is null then 'uses' else 'carries' end, hour
  from volume
  where instance_id is not null

  union all
  select key, claimant, 'claimed by', hour
  from volume
  where claimant is not null

  union all
  select claimant, key, 'claims', hour
  from volume
  where claimant is not null

  union all
  select public.resource_key('instances', account, region, instance_group), public.resource_key('instance', account, region, instance_id),
    'one of', max(hour)
  from metrics.instance_health_hourly
  where hour > as_of - interval '24 hours' and hour <= as_of
  group by account, region, instance_group, instance_id

  union all
  select public.resource_key('instance', i.account, i.region, i.instance_id),
    public.resource_key('host', n.cluster, n.endpoint), 'reported by', max(n.hour)
  from metrics.node_hourly as n
  inner join instance as i using (instance_id)
  where n.hour > as_of - interval '24 hours' and n.hour <= as_of
  group by i.account, i.region, i.instance_id, n.cluster, n.endpoint

  union all
  select public.resource_key('instance', account, region, instance_id), public.resource_key('broker', cluster, broker),
    'runs on', hour
  from machine_of_broker

  union all
  select public.resource_key('broker', cluster, broker), public.resource_key('instance', account, region, instance_id),
    'loads', hour
  from machine_of_broker

  union all
  select public.resource_key('instance', i.account, i.region, i.instance_id),
    public.resource_key('process', p.cluster, p.endpoint), 'runs on', p.hour
  from process as p
  inner join instance as i using (instance_id)

  union all
  select public.resource_key('process', cluster, endpoint), public.resource_key('application', cluster, application_id),
    'process of', hour
  from process

  union all
  select public.resource_key('application', cluster, application_id), public.resource_key('process', cluster, endpoint),
    'runs as', hour
  from process

  union all
  -- The group of a Kafka Streams application has the application's id.
  select public.resource_key('application', cluster, application_id), public.resource_key('group', cluster, application_id),
    'reads as', max(hour)
  from process
  where is_streams
  group by cluster, application_id

  union all
  select public.resource_key('group', cluster, application_id), public.resource_key('application', cluster, application_id),
    'reads for', max(hour)
  from process
  where is_streams
  group by cluster, application_id

  union all
  select public.resource_key('instance', i.account, i.region, i.instance_id),
    public.resource_key('group', m.cluster, m.group_id), 'member runs on', max(m.hour)
  from inventory.consumer_member_hourly as m
  inner join members_known as k on m.cluster = k.cluster and m.hour = k.hour
  inner join instance as i on ltrim(m.host, '/') in (i.private_ip, i.private_dns)
  group by i.account, i.region, i.instance_id, m.cluster, m.group_id

  union all
  select public.resource_key('connector', cluster, connect_cluster, connector), public.resource_key('group', cluster, group_id),
    'reads as', hour
  from inventory.connector_hourly
  where hour = as_of and group_id is not null

  union all
  select public.resource_key('broker', cluster, leader::text), public.resource_key('topic', cluster, topic), 'leads', as_of
  from (
    select distinct cluster, topic, leader
    from metrics.partition_hourly
    where hour = as_of and leader is not null
  ) as led

  union all
  select public.resource_key('topic', cluster, topic), public.resource_key('group', cluster, group_id), 'read by', as_of
  from reading

  union all
  select public.resource_key('reading', cluster, topic, group_id), public.resource_key('group', cluster, group_id), 'part of', as_of
  from reading

  union all
  select distinct public.resource_key('process', o.cluster, o.endpoint), public.resource_key('client', o.cluster, o.client_id),
    'reads with', o.hour
  from metrics.client_hourly as o
  inner join (
    select distinct cluster, labels::jsonb ->> 'client' as client_id
    from metrics.broker_sample
    where hour = as_of and metric = 'client_fetch_bytes_per_second'
  ) as f using (cluster, client_id)
  where o.hour = as_of and o.kind = 'consumer'

  union all
  select public.resource_key('store', cluster, topic), public.resource_key('application', cluster, application_id), 'store of',
    max(hour)
  from metrics.state_store_hourly
  where hour > as_of - interval '24 hours' and hour <= as_of and application_id is not null
  group by cluster, topic, application_id

  union all
  select public.resource_key('application', cluster, application_id), public.resource_key('topic', cluster, topic), 'writes', hour
  from inventory.topic_hourly
  where hour = as_of and application_id is not null

  union all
  select public.resource_key('application', cluster, application_id), public.resource_key('cluster', cluster), 'has topics on', as_of
  from (
    select distinct cluster, application_id
    from inventory.topic_hourly
    where hour = as_of and application_id is not null
  ) as owned

  union all
  select public.resource_key('cluster', cluster), public.resource_key('broker', cluster, broker), 'broker of', max(hour)
  from broker
  group by cluster, broker
$$;
