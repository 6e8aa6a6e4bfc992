-- How things hang together in an hour: if the upstream one is sick, the downstream one may be.
create or replace function public.thing_links(as_of timestamptz) returns table (
  upstream text, downstream text, basis text
) language sql stable as $$
  select
    public.thing_key('volume', account, region, volume_id), public.thing_key('instance', account, region, instance_id),
    'attached'
  from inventory.volume_hourly
  where hour = as_of and instance_id is not null

  union all
  select public.thing_key('instance', i.account, i.region, i.instance_id),
    public.thing_key('broker', b.cluster, coalesce(b.broker_id::text, b.endpoint)), 'runs on'
  from metrics.broker_hourly as b
  inner join inventory.instance_hourly as i using (hour, instance_id)
  where b.hour = as_of

  union all
  select public.thing_key('instance', i.account, i.region, i.instance_id),
    public.thing_key('process', p.cluster, p.endpoint), 'runs on'
  from metrics.jvm_app_hourly as p
  inner join inventory.instance_hourly as i using (hour, instance_id)
  where p.hour = as_of

  union all
  select public.thing_key('process', cluster, endpoint),
    public.thing_key('application', cluster, coalesce(application_id, app)), 'process of'
  from metrics.jvm_app_hourly
  where hour = as_of

  union all
  -- A Streams application's group has its id.
  select distinct public.thing_key('application', p.cluster, p.application_id),
    public.thing_key('group', p.cluster, p.application_id), 'reads as'
  from metrics.jvm_app_hourly as p
  inner join metrics.consumer_group_hourly as g
    on p.hour = g.hour and p.cluster = g.cluster and p.application_id = g.group_id
  where p.hour = as_of

  union all
  select distinct public.thing_key('instance', i.account, i.region, i.instance_id),
    public.thing_key('group', m.cluster, m.group_id), 'member runs on'
  from inventory.consumer_member_hourly as m
  inner join inventory.instance_hourly as i on m.hour = i.hour and ltrim(m.host, '/') in (i.private_ip, i.private_dns)
  where m.hour = as_of

  union all
  select distinct public.thing_key('broker', cluster, leader::text), public.thing_key('topic', cluster, topic), 'leads'
  from metrics.partition_hourly
  where hour = as_of and leader is not null

  union all
  select distinct public.thing_key('topic', cluster, topic), public.thing_key('group', cluster, group_id), 'read by'
  from metrics.consumer_partition_hourly
  where hour = as_of

  union all
  select public.thing_key('store', cluster, topic), public.thing_key('application', cluster, application_id), 'store of'
  from metrics.state_store_hourly
  where hour = as_of and application_id is not null

  union all
  select public.thing_key('application', cluster, application_id), public.thing_key('topic', cluster, topic), 'writes'
  from inventory.topic_hourly
  where hour = as_of and application_id is not null

  union all
  select distinct public.thing_key('cluster', cluster),
    public.thing_key('broker', cluster, coalesce(broker_id::text, endpoint)), 'broker of'
  from metrics.broker_hourly
  where hour = as_of
$$;
