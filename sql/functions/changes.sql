-- Changes in a look-back that ends with an hour, found by comparing each hour with the previous known one: restarts of
-- processes and hosts, volumes, topics, group members. They are shown as recent changes, never as a cause. The first hour is
-- compared with the newest one in the 24 hours before the look-back that has data; a process may have been unreachable in it,
-- so restarts are compared with all of these hours.
create or replace function public.changes(as_of timestamptz, look_back interval default interval '3 hours') returns table (
  hour timestamptz, resource text, what text, was text, now text
) language sql stable as $$
  with span as (
    select as_of - look_back as ends, as_of - look_back - interval '24 hours' as begins
  ),

  known as (
    select
      (select max(n.hour) from inventory.instance_hourly as n where n.hour > s.begins and n.hour <= s.ends) as instances,
      (select max(n.hour) from inventory.volume_hourly as n where n.hour > s.begins and n.hour <= s.ends) as volumes,
      (select max(n.hour) from inventory.topic_hourly as n where n.hour > s.begins and n.hour <= s.ends) as topics,
      (select max(n.hour) from inventory.consumer_member_hourly as n where n.hour > s.begins and n.hour <= s.ends) as members,
      (select max(n.hour) from metrics.state_store_hourly as n where n.hour > s.begins and n.hour <= s.ends) as stores,
      s.ends
    from span as s
  ),

  seen as (
    select
      public.resource_key('broker', b.cluster, coalesce(b.broker_id::text, b.endpoint)) as resource, b.hour, f.what, f.value
    from metrics.broker_hourly as b
    cross join lateral (values ('restarted', to_jsonb(b.process_started_at))) as f (what, value)
    where b.hour > (select begins from span) and b.hour <= as_of and b.broker_id is not null

    union all
    select public.resource_key('process', p.cluster, p.endpoint), p.hour, 'restarted', to_jsonb(p.process_started_at)
    from metrics.jvm_app_hourly as p
    where p.hour > (select begins from span) and p.hour <= as_of

    union all
    select public.resource_key('instance', i.account, i.region, i.instance_id), i.hour, f.what, f.value
    from inventory.instance_hourly as i
    cross join lateral (
      values ('launched', to_jsonb(i.launched_at)), ('instance_type', to_jsonb(i.instance_type))
    ) as f (what, value)
    where i.hour >= (select coalesce(k.instances, k.ends) from known as k) and i.hour <= as_of

    union all
    select public.resource_key('volume', v.account, v.region, v.volume_id), v.hour, f.what, f.value
    from inventory.volume_hourly as v
    cross join lateral (
      values
      ('volume_type', to_jsonb(v.volume_type)), ('size_gib', to_jsonb(v.size_gib)),
      ('provisioned_iops', to_jsonb(v.provisioned_iops)),
      ('provisioned_throughput_mib_s', to_jsonb(v.provisioned_throughput_mib_s))
    ) as f (what, value)
    where v.hour >= (select coalesce(k.volumes, k.ends) from known as k) and v.hour <= as_of

    union all
    select public.resource_key('topic', t.cluster, t.topic), t.hour, f.what, f.value
    from inventory.topic_hourly as t
    cross join lateral (
      values
      ('partitions', to_jsonb(t.partitions)), ('replication_factor', to_jsonb(t.replication_factor)),
      ('retention_ms', to_jsonb(t.retention_ms)), ('cleanup_policy', to_jsonb(t.cleanup_policy))
    ) as f (what, value)
    where t.hour >= (select coalesce(k.topics, k.ends) from known as k) and t.hour <= as_of

    union all
    select public.resource_key('group', m.cluster, m.group_id), m.hour, 'hosts',
      jsonb_agg(distinct ltrim(m.host, '/') order by ltrim(m.host, '/'))
    from inventory.consumer_member_hourly as m
    where m.hour >= (select coalesce(k.members, k.ends) from known as k) and m.hour <= as_of
    group by m.cluster, m.group_id, m.hour

    union all
    select public.resource_key('store', s.cluster, s.topic), s.hour, 'versions', to_jsonb(s.versions)
    from metrics.state_store_hourly as s
    where s.hour >= (select coalesce(k.stores, k.ends) from known as k) and s.hour <= as_of
  ),

  compared as (
    select
      s.*,
      lag(s.value) over (partition by s.resource, s.what order by s.hour) as before
    from seen as s
    where s.value is not null
  )

  select c.hour, c.resource, c.what, c.before #>> '{}', c.value #>> '{}'
  from compared as c
  where c.before <> c.value and c.hour > as_of - look_back
  and case when c.what = 'restarted'
    then not public.is_same_start((c.before #>> '{}')::timestamptz, (c.value #>> '{}')::timestamptz) else true
  end
  order by c.hour, c.resource, c.what
$$;
