/*
title: Brokers hold too many partitions
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.topic_hourly, inventory.topic_hourly]
params:
  many: {default: 4000, unit: partitions, why: "what Kafka's authors advise as the most for a broker (Apache Kafka blog, KIP-500 era)"}
  excessive: {default: 10000, unit: partitions, why: "with KRaft's metadata 10,000 on a calm broker are at ease; beyond that a restart takes long"}
  least_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's monitoring page advises at least 30 % idle request handlers"}
  most_open_files_ratio: {default: 0.5, unit: ratio, why: "a restart or a burst of segments may double the open files"}
  growth_ratio: {default: 0.2, unit: ratio, why: "a fifth more each month doubles the partitions in four"}
  growth_days: {default: 30, unit: days, why: "a month evens out releases and their clean-up"}
  most_shown: {default: 10, unit: applications, why: "more commands are pasted by nobody"}
description: |
  A broker holds many partitions; a warning where it also shows: its request handlers are hardly idle, its open files near
  their limit, or the cluster's partitions have grown fast. Without a symptom it is an info, beyond `excessive` a warning.
key_metrics: [most_partitions, handlers_idle_ratio, open_files_ratio, grown_ratio, quiet_partitions]
verdicts:
  hurts:
    status: firing
    severity: warning
    message: "Broker {{ fullest_broker }} holds {{ most_partitions }} partitions, and it shows:{% if handlers_idle_ratio < least_idle_ratio %} the request handlers are idle for {{ handlers_idle_ratio }} only;{% endif %}{% if open_files_ratio > most_open_files_ratio %} {{ open_files_ratio }} of the limit of open files are taken;{% endif %}{% if grown_ratio >= growth_ratio %} the cluster has {{ grown_ratio }} more than {{ growth_days }} ago;{% endif %} {{ many }} are many."
    actions:
      - &fewer "Remove topics that nobody uses, and make new ones with fewer partitions: {{ quiet_partitions }} of {{ partitions }} got nothing in this hour.{% if could_go %} By what is found already there could go:{% for one in could_go %} {{ one.partitions | counted('partition') }} ({{ one.finding }}){{ ';' if not loop.last else '.' }}{% endfor %}{% endif %} Else add a broker and move replicas to it."
    commands: &list
      - "{% for application in gone_applications or [] %}streamwarden plan removal {{ application }} --cluster {{ cluster }}\n{% endfor %}"
      - "streamwarden psql -c \"select topic, owner, partitions, needed_partitions from topics_low_rate where cluster = '{{ cluster }}'\""
  excessive:
    status: firing
    severity: warning
    message: "Broker {{ fullest_broker }} holds {{ most_partitions }} partitions; it is calm so far, but {{ excessive }} are too many to restart in good time."
    actions:
      - *fewer
    commands: *list
  many:
    status: firing
    severity: info
    message: "Broker {{ fullest_broker }} holds {{ most_partitions }} partitions; {{ many }} are many, but all is calm."
    actions:
      - *fewer
    commands: *list
  few: {status: ok, message: "No broker holds more than {{ most_partitions }} partitions; {{ many }} are many."}
  silent: {status: unknown, message: "{{ silent_brokers }} of {{ brokers }} brokers did not answer over JMX."}
  untold: {status: unknown, message: "No broker told how many partitions it holds."}
caused_by:
  overpartitioning_adds_partitions: [hurts, excessive, many]
open_after_hours: 2
clear_after_hours: 24
runbook: |
  1. See what could go by which finding, which kind and which application has them (by kind, by application), and how
     many got nothing in the hour.
  2. Remove what nobody reads or writes; a Streams application that is gone leaves changelogs and repartition topics.
  3. Where each is needed, add a broker and move replicas, or raise num.io.threads and the limit of open files.
limitations: |
  Followers cost less than leaders; both count as one. Clusters with ZooKeeper bear less than those with KRaft, and aren't
  told apart. Growth is known where topics were gathered `growth_days` ago. A topic that got nothing in this hour may be
  one that is written once a day. What could go is what topic_overpartitioned, topic_abandoned and changelog_abandoned
  said in the hours before; a topic may be counted by two of them.
*/
with broker as (
  select
    cluster,
    coalesce(broker_id::text, endpoint) as broker_id,
    samples,
    partitions,
    leaders,
    request_handler_idle_min_ratio as handlers_idle_ratio,
    open_file_descriptors / nullif(max_file_descriptors, 0) as open_files_ratio
  from metrics.broker_hourly
  where hour = :hour
),

of_brokers as (
  select
    cluster,
    count(*) as brokers,
    count(*) filter (where samples is null) as silent_brokers,
    max(partitions) as most_partitions,
    (array_agg(broker_id order by partitions desc nulls last, broker_id asc))[1] as fullest_broker,
    min(handlers_idle_ratio) filter (where partitions >= :many) as handlers_idle_ratio,
    max(open_files_ratio) filter (where partitions >= :many) as open_files_ratio,
    jsonb_agg(public.resource_key('broker', cluster, broker_id) order by broker_id)
      filter (where partitions >= :many) as affected,
    jsonb_agg(
      jsonb_build_object(
        'broker_id', broker_id, 'partitions', partitions, 'leaders', leaders,
        'handlers_idle_ratio', handlers_idle_ratio, 'open_files_ratio', open_files_ratio
      ) order by partitions desc nulls last, broker_id asc
    ) as by_broker
  from broker
  group by cluster
),

topic as (
  select
    t.cluster,
    t.kind,
    t.application_id,
    t.partitions,
    case when m.bytes_in = 0 then t.partitions else 0 end as quiet_partitions
  from inventory.topic_hourly as t
  left join metrics.topic_hourly as m on t.hour = m.hour and t.cluster = m.cluster and t.topic = m.topic
  where t.hour = :hour
),

of_topics as (
  select
    cluster,
    sum(partitions) as partitions,
    sum(quiet_partitions) as quiet_partitions
  from topic
  group by cluster
),

by_kind as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object('kind', kind, 'partitions', partitions, 'quiet_partitions', quiet_partitions)
      order by partitions desc, kind asc
    ) as by_kind
  from (
    select
      cluster,
      kind,
      sum(partitions) as partitions,
      sum(quiet_partitions) as quiet_partitions
    from topic
    group by cluster, kind
  ) as kind
  group by cluster
),

by_application as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object('application', application_id, 'partitions', partitions)
      order by partitions desc, application_id asc
    ) filter (where place <= 20) as by_application
  from (
    select
      cluster,
      application_id,
      sum(partitions) as partitions,
      row_number() over (partition by cluster order by sum(partitions) desc, application_id asc) as place
    from topic
    where application_id is not null
    group by cluster, application_id
  ) as application
  group by cluster
),

told as (
  select
    identity ->> 'cluster' as cluster,
    detector,
    identity ->> 'application_id' as application_id,
    coalesce((metrics ->> 'freed_partitions')::bigint, (metrics ->> 'partition_count')::bigint) as partitions,
    coalesce((metrics ->> 'freed_open_files')::bigint, (metrics ->> 'open_files')::bigint) as open_files
  from detect.notified_before(
    array['topic_overpartitioned', 'topic_abandoned', 'changelog_abandoned'], :hour
  )
),

could_go as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object('finding', detector, 'partitions', partitions, 'open_files', open_files)
      order by partitions desc nulls last, detector asc
    ) as could_go
  from (
    select
      cluster,
      detector,
      sum(partitions) as partitions,
      sum(open_files) as open_files
    from told
    group by cluster, detector
  ) as finding
  group by cluster
),

gone as (
  select
    cluster,
    jsonb_agg(application_id order by place) as applications
  from (
    select
      cluster,
      application_id,
      row_number() over (partition by cluster order by partitions desc nulls last, application_id asc) as place
    from told
    where application_id is not null
  ) as placed
  where place <= :most_shown
  group by cluster
),

earlier as (
  select distinct on (cluster)
    cluster,
    sum(partitions) as partitions
  from inventory.topic_hourly
  where
    hour <= :hour - make_interval(days => :growth_days::integer)
    and hour > :hour - make_interval(days => :growth_days::integer + 1)
  group by cluster, hour
  order by cluster asc, hour desc
),

judged as (
  select
    b.*,
    t.partitions,
    t.quiet_partitions,
    e.partitions as partitions_earlier,
    (t.partitions - e.partitions)::double precision / e.partitions as grown_ratio,
    k.by_kind,
    a.by_application,
    g.could_go,
    r.applications as gone_applications
  from of_brokers as b
  left join of_topics as t on b.cluster = t.cluster
  left join earlier as e on b.cluster = e.cluster
  left join by_kind as k on b.cluster = k.cluster
  left join by_application as a on b.cluster = a.cluster
  left join could_go as g on b.cluster = g.cluster
  left join gone as r on b.cluster = r.cluster
)

select
  case
    when most_partitions >= :many and (
      handlers_idle_ratio < :least_idle_ratio
      or open_files_ratio > :most_open_files_ratio
      or grown_ratio >= :growth_ratio
    ) then 'hurts'
    when most_partitions >= :excessive then 'excessive'
    when most_partitions >= :many then 'many'
    when silent_brokers > 0 then 'silent'
    when most_partitions is null then 'untold'
    else 'few'
  end as reason,
  cluster,
  most_partitions,
  fullest_broker,
  handlers_idle_ratio,
  open_files_ratio,
  grown_ratio,
  partitions,
  partitions_earlier,
  quiet_partitions,
  brokers,
  silent_brokers,
  could_go,
  gone_applications,
  by_broker,
  by_kind,
  by_application,
  affected
from judged
