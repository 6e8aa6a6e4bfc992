-- Plain topics of the newest gathered hour and their copies, by naming conventions: topics of MirrorMaker in another cluster, or groups that back them up.
create or replace view public.topic_copies as
with topic as materialized (
  select
    cluster,
    topic,
    hour
  from inventory.topic_hourly
  where hour = (select max(hour) from inventory.topic_hourly) and kind = 'plain'
),

-- MirrorMaker 2 has a topic of its own for each source cluster: ALIAS.checkpoints.internal, ALIAS.heartbeats.
alias as (
  select
    cluster,
    alias,
    alias in (select t.cluster from topic as t) as is_cluster
  from (
    select distinct
      cluster,
      regexp_replace(topic, '\.(checkpoints\.internal|heartbeats)$', '') as alias
    from topic
    where topic ~ '.\.(checkpoints\.internal|heartbeats)$'
  ) as named
),

remote as materialized (
  select
    t.cluster,
    t.topic,
    a.alias,
    a.is_cluster,
    substr(t.topic, length(a.alias) + 2) as origin
  from alias as a
  inner join topic as t on a.cluster = t.cluster and starts_with(t.topic, a.alias || '.')
),

origin as (
  select
    o.cluster,
    o.topic,
    r.cluster || '/' || r.topic as mirror,
    r.alias,
    r.is_cluster,
    count(*) over (partition by r.cluster, r.topic, r.alias) as clusters
  from remote as r
  inner join topic as o on r.origin = o.topic and r.cluster <> o.cluster
),

-- An alias is the cluster of that name; where there is none, the only other cluster that has such a topic.
mirror as (
  select
    cluster,
    topic,
    string_agg(distinct mirror, ', ') as mirrors
  from origin
  where case when is_cluster then alias = cluster else clusters = 1 end
  group by cluster, topic
),

backup as (
  select
    cluster,
    topic,
    string_agg(distinct group_id, ', ') as backups
  from metrics.consumer_partition_hourly
  where hour = (select max(t.hour) from topic as t)
  and (group_id ~* 'mirror|replicat|backup|archiv' or group_id ~* '^connect-.*(s3|gcs|hdfs|blob)')
  and (lag_records = 0 or committed_at >= hour - interval '1 day')
  group by cluster, topic
)

select
  t.cluster,  -- Kafka cluster
  t.topic,  -- Topic; MirrorMaker's own topics are left out
  m.mirrors,  -- Topics of other watched clusters that MirrorMaker 2 copies it to, by their names; null: none known
  b.backups,  -- Groups named as a mirror, backup, archive, or Connect sink to object storage that have read all of it or committed within a day; null: none
  case
    when num_nonnulls(m.mirrors, b.backups) > 0 then true
    when (select count(distinct all_of.cluster) from topic as all_of) > 1 then false
  end as has_copy,  -- Whether it has a mirror or a backup; null: only one cluster is watched, so a mirror could be in a cluster that is not
  t.hour  -- Start of the hour (UTC)
from topic as t
left join mirror as m using (cluster, topic)
left join backup as b using (cluster, topic)
where t.topic !~ '\.internal$|(^|\.)heartbeats$' and (t.cluster, t.topic) not in (select r.cluster, r.topic from remote as r)
order by t.cluster asc, t.topic asc;
