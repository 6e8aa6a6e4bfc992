/*
title: Too many partitions per broker
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.topic_hourly, inventory.topic_hourly]
params:
  many:
    default: 4000
    unit: partitions
    why: "the most per broker that Kafka's authors recommend (Apache Kafka blog, before KRaft)"
  excessive:
    default: 10000
    unit: partitions
    why: "with KRaft a broker handles 10,000 if it has little traffic; with more, a restart takes long"
  least_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's monitoring page recommends at least 30 % idle request handlers"}
  most_open_files_ratio: {default: 0.5, unit: ratio, why: "a restart or a burst of new segments can double the open files"}
  growth_ratio: {default: 0.2, unit: ratio, why: "a fifth more each month doubles the partitions in four months"}
  growth_days: {default: 30, unit: days, why: "a month evens out releases and their clean-up"}
  most_shown: {default: 10, unit: applications, why: "a ticket with more is not read to its end"}
key_metrics: [most_partitions, handlers_idle_ratio, open_files_ratio, grown_ratio, quiet_partitions]
verdicts:
  many_with_symptoms:
    status: firing
    severity: warning
    message: >
      Broker {{ fullest_broker }} holds {{ most_partitions }} partitions (limit {{ many }}), and cluster {{ cluster }} shows
      symptoms: {{ symptoms | join(", ") | words }}.
    details:
      - >
        {% if handlers_idle_ratio < least_idle_ratio %}Request handlers are idle for {{ handlers_idle_ratio }} of the time
        (limit {{ least_idle_ratio }}).{% endif %}
      - >
        {% if open_files_ratio > most_open_files_ratio %}{{ open_files_ratio }} of the file descriptors are in use (limit
        {{ most_open_files_ratio }}).{% endif %}
      - >
        {% if grown_ratio >= growth_ratio %}The cluster has {{ grown_ratio }} more partitions than {{ growth_days }}
        ago.{% endif %}
      - &quiet "{% if partitions %}{{ quiet_partitions }} of {{ partitions | counted('partition') }} received no records in this hour.{% endif %}"
      - &removable >
        {% for one in could_go or [] %}Finding {{ one.finding }} lists {{ one.partitions | counted("partition") }} to
        remove. {% endfor %}
    impact: &impact "Broker restarts, leader elections, and controller failovers take longer, and requests wait."
    actions: &actions
      - "Remove unused topics, and internal topics of applications that no longer run."
      - "Create new topics with fewer partitions."
      - "If all partitions are needed, add a broker and reassign replicas to it."
    commands: &commands
      - "{% for one in gone_applications or [] %}streamwarden plan removal {{ one }} --cluster {{ cluster }}\n{% endfor %}"
      - "streamwarden warehouse psql -c \"select topic, owner, partitions, needed_partitions from topics_low_rate where cluster = '{{ cluster }}'\""
  excessive:
    status: firing
    severity: warning
    message: "Broker {{ fullest_broker }} holds {{ most_partitions }} partitions (limit {{ excessive }}), without symptoms so far."
    details: &details
      - *quiet
      - *removable
    impact: *impact
    actions: *actions
    commands: *commands
  many:
    status: firing
    severity: info
    message: "Broker {{ fullest_broker }} holds {{ most_partitions }} partitions (limit {{ many }}), without symptoms so far."
    details: *details
    impact: "Broker restarts, leader elections, and controller failovers will take longer if partitions keep growing."
    actions: *actions
    commands: *commands
  within_limit: {status: ok, message: "Brokers of cluster {{ cluster }} hold at most {{ most_partitions }} partitions (limit {{ many }})."}
  no_response:
    status: unknown
    message: "Not evaluated: {{ unresponsive_brokers }} of {{ brokers | counted('broker') }} did not respond over JMX."
  not_reported: {status: unknown, message: "Not evaluated: no broker of cluster {{ cluster }} reported its partitions."}
caused_by:
  overpartitioning_adds_partitions: [many_with_symptoms, excessive, many]
open_after_hours: 2
clear_after_hours: 24
description: |
  A broker holds at least `many` partitions. The finding is a warning if one of three symptoms is present: busy request
  handlers or many open files on such a broker, or a fast growth of the cluster's partitions. Without a symptom it is
  an info, from `excessive` on a warning.
runbook: |
  ## Meaning
  Brokers hold more partitions than recommended.
  ## Impact
  Every partition costs file descriptors, memory, and time at a restart, a leader election, or a controller failover.
  ## Diagnosis
  1. See which findings list removable partitions, and which kinds of topics and applications have most (metrics
     `by_kind`, `by_application`).
  2. Compare with the partitions that received no records in the hour.
  ## Mitigation
  1. Remove topics that nobody reads or writes. An application that no longer runs leaves changelog and repartition topics.
  2. If all partitions are needed, add a broker and reassign replicas to it.
  3. Until then raise num.io.threads and the limit of open files.
limitations: |
  Followers cost less than leaders, and both count as one. Clusters with ZooKeeper handle fewer partitions than those with
  KRaft; the limits do not distinguish them. Growth is known only if topics were collected growth_days ago. A topic
  without records in this hour may be written once a day. Removable partitions are those of the last findings of
  topic_overpartitioned, topic_abandoned, and changelog_abandoned; a topic may be counted by two of them.
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
    count(*) filter (where samples is null) as unresponsive_brokers,
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

removable as (
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
    from removable
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
    from removable
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

evaluated as (
  select
    b.*,
    t.partitions,
    t.quiet_partitions,
    e.partitions as partitions_earlier,
    (t.partitions - e.partitions)::double precision / e.partitions as grown_ratio,
    k.by_kind,
    a.by_application,
    g.could_go,
    r.applications as gone_applications,
    array_remove(
      array[
        case when b.handlers_idle_ratio < :least_idle_ratio then 'busy_request_handlers' end,
        case when b.open_files_ratio > :most_open_files_ratio then 'many_open_files' end,
        case when (t.partitions - e.partitions)::double precision / e.partitions >= :growth_ratio then 'fast_growth' end
      ], null
    ) as symptoms
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
    when most_partitions >= :many and symptoms <> '{}' then 'many_with_symptoms'
    when most_partitions >= :excessive then 'excessive'
    when most_partitions >= :many then 'many'
    when unresponsive_brokers > 0 then 'no_response'
    when most_partitions is null then 'not_reported'
    else 'within_limit'
  end as reason,
  cluster,
  most_partitions,
  fullest_broker,
  handlers_idle_ratio,
  open_files_ratio,
  grown_ratio,
  to_jsonb(symptoms) as symptoms,
  partitions,
  partitions_earlier,
  quiet_partitions,
  brokers,
  unresponsive_brokers,
  could_go,
  gone_applications,
  by_broker,
  by_kind,
  by_application,
  affected
from evaluated
