/*
title: Partitions are moved at others' cost, or a throttle was left behind
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.reassignment_hourly, inventory.broker_hourly, inventory.topic_hourly, metrics.broker_hourly, metrics.partition_hourly, metrics.topic_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.replica_sample]
params:
  stalled_hours: {default: 2, unit: h, why: "a partition that is moved at any rate is nearer to its end by then"}
  left_hours: {default: 2, unit: h, why: "who moves partitions has this long to verify, which takes the throttle away"}
  change_ratio: {default: 1.8, unit: ratio, why: "flushes of 20 ms instead of 10 ms are felt downstream already"}
  change_floor_ms: {default: 10, unit: ms, why: "what is less slow than this nobody feels"}
  least_history: {default: 168, unit: h, why: "a week has every hour that is busy by habit"}
  late_seconds: {default: 600, unit: seconds, why: "readers of a stream notice ten minutes"}
  lag_ratio: {default: 2, unit: ratio, why: "of the longest lag of the day before the move, and of this hour in the four weeks before"}
  led_share: {default: 0.8, unit: ratio, why: "of what is late, so much is led by brokers that take part in the move"}
  groups_ratio: {default: 0.5, unit: ratio, why: "a broker that answers late is late to all who read there; one group of many has a reason of its own"}
  copied_ratio: {default: 0.1, unit: ratio, why: "less than a tenth of what a broker takes in and sends doesn't slow it"}
  throttle_ratio: {default: 0.5, unit: ratio, why: "half of the rate that hurts is a beginning"}
  written_ratio: {default: 1.5, unit: ratio, why: "a throttle below what is written to the moving partitions keeps them from ever being whole"}
  most_shown: {default: 20, unit: topics, why: "more in a ticket are read by nobody"}
key_metrics: [left_bytes, moved_in_at_least_seconds, copied_bytes_per_second, throttle_bytes_per_second, throttled_topics]
verdicts:
  disturbs:
    status: firing
    severity: warning
    message: "While {{ moving_partitions | counted('partition') }} {{ 'is' if moving_partitions == 1 else 'are' }} moved, {% if lacking_partitions %}{{ lacking_partitions | counted('other replica') }} {{ 'has' if lacking_partitions == 1 else 'have' }} fallen behind on brokers that take part{% endif %}{% if lacking_partitions and (slow_brokers or late_groups) %}; {% endif %}{% if slow_brokers %}{% for one in slow_brokers %}{{ '' if loop.first else '; ' }}5 % of the log flushes of broker {{ one.broker_id.value }} take longer than {{ one.log_flush_p95_ms }}, {{ one.usual_ms }} is usual{% endfor %}{% endif %}{% if slow_brokers and late_groups %}; {% endif %}{% if late_groups %}{{ late_groups | counted('group') }} {{ 'is' if late_groups == 1 else 'are' }} {{ lag_at_least_seconds }} or more behind where these brokers lead{% endif %}. {% if left_bytes %}At least {{ left_bytes }} are left{% if moved_in_at_least_seconds %}: {{ moved_in_at_least_seconds }} or longer{% endif %}.{% else %}How much is left isn't known.{% endif %}"
    actions:
      - "{% if throttle_to_set_bytes_per_second %}Throttle it to {{ throttle_to_set_bytes_per_second }} for each broker{% if throttle_bytes_per_second %}, instead of {{ throttle_bytes_per_second }}{% endif %}{% if written_bytes_per_second %}: more than the {{ written_bytes_per_second }} that are written to what is moved{% endif %}.{% else %}Move fewer partitions at a time{% if written_bytes_per_second %}: a throttle that helps would be below the {{ written_bytes_per_second }} that are written to them, and they would never be whole{% endif %}.{% endif %} Or cancel it, and go on at a quieter hour."
    commands:
      - "kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --list"
      - "{% if throttle_to_set_bytes_per_second %}kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --reassignment-json-file THE-MOVE.json --execute --additional --throttle {{ throttle_to_set_bytes_per_second.value | int }}{% endif %}"
  stalled:
    status: firing
    severity: warning
    message: "{{ moving_partitions | counted('partition') }} {{ 'is' if moving_partitions == 1 else 'are' }} being moved, and no nearer to {{ 'its' if moving_partitions == 1 else 'their' }} end than {{ stalled_hours }} before{% if left_bytes %}: at least {{ left_bytes }} are left{% endif %}.{% if down_brokers %} Broker {{ down_brokers }}, where replicas shall go, is down.{% endif %}"
    actions:
      - "{% if down_brokers %}Start broker {{ down_brokers }}, or cancel the move.{% elif throttle_to_set_bytes_per_second %}Raise the throttle from {{ throttle_bytes_per_second }} to {{ throttle_to_set_bytes_per_second }}{% if written_bytes_per_second %}: what is written to these partitions takes {{ written_bytes_per_second }} of it{% endif %}.{% else %}Look into the log of the brokers that get replicas: why don't they copy? Or cancel the move.{% endif %}"
    commands:
      - "kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --list"
      - "{% if throttle_to_set_bytes_per_second and not down_brokers %}kafka-reassign-partitions.sh --bootstrap-server {{ bootstrap_servers }} --reassignment-json-file THE-MOVE.json --execute --additional --throttle {{ throttle_to_set_bytes_per_second.value | int }}{% endif %}"
  left_behind:
    status: firing
    severity: warning
    message: "Nothing is being moved, and a throttle is still set, for {{ throttle_stands_seconds }} at least: replicas of {{ throttled_topics | counted('topic') }} that fall behind catch up with no more than {{ throttle_bytes_per_second }} on a broker, after each restart."
    actions:
      - &take_away "Take it away."
    commands: &delete
      - "{% for one in throttled %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --delete-config {{ one.settings }}\n{% endfor %}"
      - "{% for one in throttled_brokers %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type brokers {% if one.broker == 'default' %}--entity-default{% else %}--entity-name {{ one.broker }}{% endif %} --delete-config {{ one.settings }}\n{% endfor %}"
  left_over:
    status: firing
    severity: info
    message: "Nothing is being moved, and half of a throttle is still set, for {{ throttle_stands_seconds }} at least: {% if throttled_topics %}{{ throttled_topics | counted('topic') }} {{ 'names' if throttled_topics == 1 else 'name' }} replicas to throttle, and no broker of theirs has a rate{% else %}{{ rated_brokers | counted('broker') }} {{ 'has' if rated_brokers == 1 else 'have' }} a rate, and no topic names replicas that go with it{% endif %}. It slows nothing now."
    actions:
      - *take_away
    commands: *delete
  left_perhaps:
    status: firing
    severity: info
    message: "Nothing is being moved, and {{ throttled_topics | counted('topic') }} {{ 'names' if throttled_topics == 1 else 'name' }} replicas to throttle, for {{ throttle_stands_seconds }} at least. Whether brokers have a rate for it they didn't tell."
    actions:
      - *take_away
    commands: *delete
  moving: {status: ok, message: "{{ moving_partitions | counted('partition') }} {{ 'is' if moving_partitions == 1 else 'are' }} moved, and nobody is disturbed{% if left_bytes %}; at least {{ left_bytes }} are left{% endif %}."}
  just_ended: {status: ok, message: "A throttle is set, and less than {{ left_hours }} ago partitions were moved, or nothing is known of then."}
  none: {status: ok, message: "Nothing is being moved, and no throttle slows replicas."}
  unseen: {status: unknown, message: "{{ moving_partitions | counted('partition') }} {{ 'is' if moving_partitions == 1 else 'are' }} moved. Whether that disturbs anybody isn't known: {% if silent_brokers %}{{ silent_brokers | counted('broker') }} that {{ 'takes' if silent_brokers == 1 else 'take' }} part told no flush times, or what is usual of them isn't known{% elif not is_isr_told %}which replicas are in sync wasn't told{% else %}how much of it is left wasn't told{% endif %}."}
  throttles_unknown: {status: unknown, message: "Nothing is being moved. Which topics are throttled isn't known: the settings of {{ unknown_topics | counted('topic') }} weren't told."}
  untold: {status: unknown, message: "The cluster didn't list what is being moved."}
causes:
  reassignment_slows_brokers: [disturbs]
  reassignment_delays_consumers: [disturbs]
open_after_hours: 1
clear_after_hours: 2
description: |
  While partitions are moved: on a broker that gets replicas or leads what is moved (a) more replicas than before the move
  have fallen behind, those that are being added and those of brokers that are down or were restarted in the hour not
  counted; (b) the 95th percentile of the log flushes is change_ratio times its usual before the move (same hour of the
  week) and change_floor_ms more, where what is copied is copied_ratio of its traffic or more; (c) groups that are
  late_seconds behind, and lag_ratio times what they were at most in the hours compared, have led_share of what is late
  there, and are groups_ratio of all that read there. Stalled: of what was being moved stalled_hours before nothing is done
  and no byte less is left, or it goes to a broker that is down. Left behind: a throttle that stands for left_hours
  with nothing being moved; one rule, as a throttle belongs to a move for as long as there is one.
runbook: |
  1. Who moves? kafka-reassign-partitions.sh --list; Cruise Control's state.
  2. Disturbed: throttle it, above what is written to the moving partitions; or move fewer at a time, the leaders last.
  3. Stalled: is the target up, is there room on its disk, is the throttle above what is written?
  4. A throttle left behind: kafka-reassign-partitions.sh --verify with the file of the move takes it away; without the
     file the commands do. Whoever set it on purpose says so in an exception.
limitations: |
  What is moved is listed once an hour: moves that begin and end between two runs aren't seen. Sizes are those of the log
  directories, a compacted copy may be smaller than its origin; what is written meanwhile adds to what is left. What
  happens at the same time as a move needn't be its fault. Moves between directories of one broker are only seen as
  replicas on their way, and never judged.
*/
with of_broker as materialized (
  select
    hour,
    cluster,
    broker_id,
    is_listed,
    adding_replicas,
    throttles
  from inventory.broker_hourly
  where hour = :hour
),

-- Topics that name replicas to throttle, in this hour and in those before.
named as materialized (
  select
    hour,
    cluster,
    topic,
    leader_throttled_replicas,
    follower_throttled_replicas
  from inventory.topic_hourly
  where hour >= :hour - make_interval(hours => cast(:left_hours as integer))
  and hour <= :hour
  and (leader_throttled_replicas is not null or follower_throttled_replicas is not null)
),

cluster as (
  select
    cluster,
    bool_or(adding_replicas is not null) as is_told,
    bool_or(adding_replicas > 0) as is_moving,
    bool_or(throttles <> '{}') as has_rates,
    bool_and(throttles is not null) filter (where is_listed) as is_rate_told
  from of_broker
  group by cluster
),

concerned as materialized (
  select *
  from cluster
  where is_moving or has_rates or cluster in (select n.cluster from named as n)
),

-- The same hour by hour, back to where the move began, or the throttle was seen first.
past as (
  select
    hour,
    cluster,
    bool_or(adding_replicas is not null) as is_told,
    coalesce(bool_or(adding_replicas > 0), false) as is_moving,
    coalesce(bool_or(throttles <> '{}'), false) as has_rates
  from inventory.broker_hourly
  where hour > :hour - interval '336 hours' and hour <= :hour
  and cluster = any(array(select c.cluster from concerned as c))
  group by hour, cluster
),

began as materialized (
  select
    p.cluster,
    min(p.hour) filter (where p.is_moving and p.hour > coalesce(s.still_hour, '-infinity')) as moving_since,
    count(*) filter (
      where p.is_told and not p.is_moving
      and p.hour >= :hour - make_interval(hours => cast(:left_hours as integer))
    ) > :left_hours as is_still,
    count(*) filter (
      where p.has_rates
      and p.hour >= :hour - make_interval(hours => cast(:left_hours as integer))
    ) > :left_hours as has_rates_left
  from past as p
  left join (
    select
      cluster,
      max(hour) filter (where is_told and not is_moving) as still_hour
    from past
    group by cluster
  ) as s using (cluster)
  group by p.cluster
),

moving as materialized (
  select
    r.*,
    p.leader,
    p.isr,
    b.left_bytes as before_left_bytes,
    b.cluster is not null as moved_before,
    d.goes_down
  from inventory.reassignment_hourly as r
  left join metrics.partition_hourly as p
    on r.hour = p.hour and r.cluster = p.cluster and r.topic = p.topic and r.partition = p.partition
  left join inventory.reassignment_hourly as b
    on
      b.hour = :hour - make_interval(hours => cast(:stalled_hours as integer))
      and r.cluster = b.cluster and r.topic = b.topic and r.partition = b.partition and r.adding = b.adding
  cross join lateral (
    select count(*) > 0 as goes_down
    from of_broker as o
    where o.cluster = r.cluster and not o.is_listed and r.adding @> to_jsonb(o.broker_id)
  ) as d
  where r.hour = :hour and r.adding <> '[]'
),

taking_part as materialized (
  select distinct
    m.cluster,
    b.broker_id
  from moving as m
  cross join lateral (
    select m.leader as broker_id
    union all
    select cast(a.broker_id as integer) from jsonb_array_elements_text(m.adding) as a (broker_id)
  ) as b
  where b.broker_id is not null
),

done as (
  select distinct b.cluster
  from inventory.reassignment_hourly as b
  left join moving as m on b.cluster = m.cluster and b.topic = m.topic and b.partition = m.partition and b.adding = m.adding
  where b.hour = :hour - make_interval(hours => cast(:stalled_hours as integer))
  and b.adding <> '[]' and m.cluster is null
),

progress as (
  select
    m.cluster,
    count(*) as moving_partitions,
    sum(m.left_bytes) as left_bytes,
    sum(m.partition_bytes * jsonb_array_length(m.adding)) as moving_bytes,
    bool_and(m.isr is not null) as is_isr_told,
    bool_or(m.moved_before and not m.goes_down and (m.left_bytes is null or m.before_left_bytes is null)) as is_left_unknown,
    bool_or(m.moved_before)
    and coalesce(
      sum(m.left_bytes) filter (where m.moved_before and not m.goes_down)
      >= sum(m.before_left_bytes) filter (where m.moved_before and not m.goes_down), true
    ) as is_stalled
  from moving as m
  group by m.cluster
),

-- Brokers that are down and should get replicas.
down as (
  select
    o.cluster,
    string_agg(cast(o.broker_id as text), ', ' order by o.broker_id) as down_brokers
  from of_broker as o
  inner join taking_part using (cluster, broker_id)
  where not o.is_listed
  group by o.cluster
),

-- (a) Replicas that aren't in sync, beside those that are being added: now, and before the move began. Of these clusters
-- by the index: a month of partitions lies together.
lacking as (
  select
    p.cluster,
    count(*) filter (where p.hour = :hour) as now_lacking,
    count(*) filter (where p.hour < :hour) as before_lacking,
    array_agg(distinct l.broker_id) filter (where p.hour = :hour) as lacking_brokers
  from began as g
  cross join lateral (
    select * from metrics.partition_hourly as one
    where one.hour in (:hour, g.moving_since - interval '1 hour') and one.cluster = g.cluster
    and one.missing_brokers is not null and one.isr > 0
    offset 0  -- noqa: AM09
  ) as p
  cross join lateral jsonb_array_elements_text(p.missing_brokers) as l (broker_id)
  left join moving as m
    on p.hour = m.hour and p.cluster = m.cluster and p.topic = m.topic and p.partition = m.partition
  left join of_broker as o on p.cluster = o.cluster and l.broker_id = cast(o.broker_id as text)
  left join metrics.broker_hourly as h
    on p.hour = h.hour and p.cluster = h.cluster and l.broker_id = cast(h.broker_id as text)
  left join metrics.broker_hourly as led on p.hour = led.hour and p.cluster = led.cluster and p.leader = led.broker_id
  where
    g.moving_since is not null
    and coalesce(not m.adding @> to_jsonb(cast(l.broker_id as integer)), true)
    and o.is_listed
    and coalesce(h.process_started_at < p.hour, true)
    and led.under_replicated_partitions is distinct from 0  -- its leader saw it come back
    and exists (
      select 1 from taking_part as t
      where t.cluster = p.cluster and (t.broker_id = p.leader or cast(t.broker_id as text) = l.broker_id)
    )
  group by p.cluster
),

-- (b) Flush times of the brokers that take part.
flushed as (
  select
    t.cluster,
    t.broker_id,
    b.samples,
    b.log_flush_p95_ms,
    b.log_flushes_per_second,
    u.median as usual_ms,
    coalesce(
      b.reassignment_bytes_in_per_second + b.reassignment_bytes_out_per_second >= :copied_ratio * (
        b.bytes_in_per_second + b.bytes_out_per_second + coalesce(b.replication_bytes_in_per_second, 0)
        + coalesce(b.replication_bytes_out_per_second, 0)
      ), true
    ) as copies_much,
    greatest(b.reassignment_bytes_in_per_second, b.reassignment_bytes_out_per_second) as copied_bytes_per_second,
    b.reassignment_bytes_in_per_second as copied_in
  from taking_part as t
  left join of_broker as o using (cluster, broker_id)
  left join metrics.broker_hourly as b
    on b.hour = :hour and t.cluster = b.cluster and t.broker_id = b.broker_id
  left join lateral (
    select
      array_agg(h.hour) as hours,
      array_agg(h.log_flush_p95_ms) as flush_ms
    from metrics.broker_hourly as h
    inner join began as g using (cluster)
    where h.hour >= b.hour - interval '672 hours' and h.hour < g.moving_since
    and h.cluster = b.cluster and h.endpoint = b.endpoint
  ) as h on true
  left join lateral public.topic_baseline(b.hour, h.hours, h.flush_ms, cast(:least_history as integer)) as u on true
  where o.is_listed is distinct from false
),

judged_brokers as (
  select
    *,
    copies_much
    and log_flush_p95_ms >= greatest(:change_ratio * usual_ms, usual_ms + :change_floor_ms) as is_slow,
    samples is null or (log_flushes_per_second is distinct from 0 and (log_flush_p95_ms is null or usual_ms is null))
      as is_silent
  from flushed
),

slow as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object('broker_id', broker_id, 'log_flush_p95_ms', log_flush_p95_ms, 'usual_ms', usual_ms)
      order by broker_id
    ) filter (where is_slow) as slow_brokers,
    count(*) filter (where is_silent) as silent_brokers,
    max(copied_bytes_per_second) as busiest_bytes_per_second,
    case when bool_and(copied_in is not null) then sum(copied_in) end as copied_bytes_per_second
  from judged_brokers
  group by cluster
),

-- (c) Groups that are far behind and weren't.
behind as materialized (
  select
    g.cluster,
    g.group_id,
    g.lag_seconds_max
  from metrics.consumer_group_hourly as g
  inner join began as s using (cluster)
  where
    g.hour = :hour
    and s.moving_since is not null
    and g.lag_seconds_max >= :late_seconds
    and g.lag_seconds_max >= :lag_ratio * (
      select max(h.lag_seconds_max)
      from metrics.consumer_group_hourly as h
      where
        h.cluster = g.cluster and h.group_id = g.group_id and h.hour < s.moving_since
        and h.hour in (
          select s.moving_since - make_interval(hours => n) from generate_series(1, 24) as n
          union
          select :hour - make_interval(days => n) from generate_series(1, 28) as n
        )
    )
),

-- What the brokers lead that take part.
led as (
  select
    p.cluster,
    p.topic,
    p.partition
  from (select distinct b.cluster from behind as b) as one
  cross join lateral (
    select * from metrics.partition_hourly as each_partition
    where each_partition.hour = :hour and each_partition.cluster = one.cluster
    offset 0  -- noqa: AM09
  ) as p
  inner join taking_part as t on p.cluster = t.cluster and p.leader = t.broker_id
),

read as (
  select
    c.cluster,
    c.group_id,
    c.topic,
    c.partition,
    c.lag_seconds,
    c.lag_seconds >= :late_seconds as is_late,
    led.cluster is not null as is_there
  from (select distinct b.cluster from behind as b) as one
  cross join lateral (
    select * from metrics.consumer_partition_hourly as each_place
    where each_place.hour = :hour and each_place.cluster = one.cluster
    offset 0  -- noqa: AM09
  ) as c
  left join led on c.cluster = led.cluster and c.topic = led.topic and c.partition = led.partition
),

late_group as materialized (
  select
    r.cluster,
    r.group_id,
    b.group_id is not null and bool_or(r.is_late and r.is_there)
    and count(*) filter (where r.is_late and r.is_there) >= :led_share * count(*) filter (where r.is_late) as is_late,
    max(r.lag_seconds) filter (where r.is_there) as lag_seconds
  from read as r
  left join behind as b using (cluster, group_id)
  group by r.cluster, r.group_id, b.group_id
  having bool_or(r.is_there)
),

late as (
  select
    g.cluster,
    g.late_groups,
    g.lag_at_least_seconds,
    g.late_group_ids,
    (
      select (jsonb_agg(jsonb_build_object('topic', r.topic, 'partition', r.partition) order by r.topic, r.partition))
      from (
        select distinct
          r.topic,
          r.partition
        from read as r
        inner join late_group as l using (cluster, group_id)
        where r.cluster = g.cluster and l.is_late and r.is_late and r.is_there
        order by r.topic asc, r.partition asc
        limit 500
      ) as r
    ) as affected
  from (
    select
      cluster,
      count(*) filter (where is_late) as late_groups,
      min(lag_seconds) filter (where is_late) as lag_at_least_seconds,
      to_jsonb((array_agg(group_id order by lag_seconds desc, group_id asc) filter (where is_late))[:20]) as late_group_ids,
      count(*) as groups
    from late_group
    group by cluster
  ) as g
  where g.late_groups >= :groups_ratio * g.groups
),

-- What is written to the moving partitions, on the broker that gets most of it: a throttle has to be above it.
written as (
  select
    cluster,
    max(bytes_per_second) as written_bytes_per_second
  from (
    select
      m.cluster,
      a.broker_id,
      sum(t.bytes_in / nullif(t.covered_seconds, 0) / i.partitions) as bytes_per_second
    from moving as m
    cross join lateral jsonb_array_elements_text(m.adding) as a (broker_id)
    inner join metrics.topic_hourly as t using (hour, cluster, topic)
    inner join inventory.topic_hourly as i using (hour, cluster, topic)
    group by m.cluster, a.broker_id
  ) as one
  group by cluster
),

rate as (
  select
    o.cluster,
    o.broker_id,
    r.setting,
    cast(r.told ->> 'value' as double precision) as bytes_per_second,
    r.told ->> 'source' = 'dynamic_default_broker_config' as is_of_all
  from of_broker as o
  cross join lateral jsonb_each(o.throttles) as r (setting, told)
),

-- What is throttled already, of the brokers that take part.
in_force as (
  select
    r.cluster,
    min(r.bytes_per_second) as throttle_bytes_per_second
  from rate as r
  inner join taking_part using (cluster, broker_id)
  where r.setting in ('leader.replication.throttled.rate', 'follower.replication.throttled.rate')
  and r.cluster in (select n.cluster from named as n where n.hour = :hour)
  group by r.cluster
),

-- Topics that have been named all along, and the brokers that have a rate for what they name.
left_topic as materialized (
  select
    cluster,
    topic,
    max(leader_throttled_replicas) as leader_replicas,
    max(follower_throttled_replicas) as follower_replicas
  from named
  group by cluster, topic
  having count(*) > :left_hours
),

slowed as (
  select
    n.cluster,
    min(r.bytes_per_second) as throttle_bytes_per_second
  from (
    select
      t.cluster,
      o.role || '.replication.throttled.rate' as setting,
      case when o.replicas <> '*' then split_part(e.replica, ':', 2) end as broker_id
    from left_topic as t
    cross join lateral (values ('leader', t.leader_replicas), ('follower', t.follower_replicas)) as o (role, replicas)
    cross join lateral string_to_table(o.replicas, ',') as e (replica)
  ) as n
  inner join rate as r
    on n.cluster = r.cluster and n.setting = r.setting and (n.broker_id is null or n.broker_id = cast(r.broker_id as text))
  group by n.cluster
),

-- As the commands need them.
listed as (
  select
    cluster,
    count(*) as throttled_topics,
    jsonb_agg(
      jsonb_build_object(
        'topic', topic, 'settings', concat_ws(
          ',', case when leader_replicas is not null then 'leader.replication.throttled.replicas' end,
          case when follower_replicas is not null then 'follower.replication.throttled.replicas' end
        )
      ) order by topic
    ) filter (where place <= :most_shown) as throttled
  from (
    select
      *,
      row_number() over (partition by cluster order by topic asc) as place
    from left_topic
  ) as placed
  group by cluster
),

rated as (
  select
    cluster,
    count(*) as rated_brokers,
    jsonb_agg(jsonb_build_object('broker', broker, 'settings', settings) order by broker) as throttled_brokers
  from (
    select
      cluster,
      broker,
      string_agg(distinct setting, ',' order by setting) as settings
    from (
      select
        r.cluster,
        r.setting,
        case when r.is_of_all then 'default' else cast(r.broker_id as text) end as broker
      from rate as r
      -- Moves between directories of a broker may go on.
      where r.setting <> 'replica.alter.log.dirs.io.max.bytes.per.second' or not exists (
        select 1 from metrics.replica_sample as f
        where f.hour = :hour and f.cluster = r.cluster and f.is_future
      )
    ) as named_broker
    group by cluster, broker
  ) as one
  group by cluster
),

untold as (
  select
    cluster,
    count(*) as unknown_topics
  from inventory.topic_hourly
  where hour = :hour and configs is null
  group by cluster
),

throttled_hour as (
  select distinct
    hour,
    cluster
  from inventory.topic_hourly
  where hour > :hour - interval '336 hours' and hour <= :hour
  and (leader_throttled_replicas is not null or follower_throttled_replicas is not null)
  and cluster = any(array(select c.cluster from concerned as c where not c.is_moving))
),

-- For how long nothing was moved and something was throttled, hour by hour.
seen as (
  select
    p.cluster,
    cast(extract(epoch from :hour - min(p.hour)) as double precision) as throttle_stands_seconds
  from past as p
  where p.hour > coalesce(
    (
      select max(f.hour)
      from past as f
      left join throttled_hour as t using (hour, cluster)
      where f.cluster = p.cluster and (f.is_moving or not f.is_told or (not f.has_rates and t.cluster is null))
    ), '-infinity'
  )
  group by p.cluster
),

weighed as (
  select
    c.*,
    p.moving_partitions,
    l.lacking_brokers,
    p.left_bytes,
    p.moving_bytes,
    p.is_left_unknown,
    p.is_stalled,
    p.is_isr_told,
    b.is_still,
    b.has_rates_left,
    b.moving_since,
    s.slow_brokers,
    s.silent_brokers,
    s.busiest_bytes_per_second,
    s.copied_bytes_per_second,
    case when p.is_isr_told then greatest(l.now_lacking - l.before_lacking, 0) end as lacking_partitions,
    case when p.cluster is not null then coalesce(a.late_groups, 0) end as late_groups,
    a.late_group_ids,
    a.lag_at_least_seconds,
    a.affected,
    d.down_brokers,
    w.written_bytes_per_second,
    f.throttle_bytes_per_second as move_throttle,
    z.throttle_bytes_per_second as left_throttle,
    i.throttled_topics,
    i.throttled,
    e.throttled_brokers,
    e.rated_brokers,
    u.unknown_topics,
    n.throttle_stands_seconds,
    greatest(
      :throttle_ratio * coalesce(s.busiest_bytes_per_second, f.throttle_bytes_per_second), :written_ratio * w.written_bytes_per_second
    ) as lower_throttle,
    :written_ratio * greatest(w.written_bytes_per_second, f.throttle_bytes_per_second) as higher_throttle
  from cluster as c
  left join began as b using (cluster)
  left join progress as p using (cluster)
  left join slow as s using (cluster)
  left join lacking as l using (cluster)
  left join late as a using (cluster)
  left join down as d using (cluster)
  left join written as w using (cluster)
  left join in_force as f using (cluster)
  left join slowed as z using (cluster)
  left join listed as i using (cluster)
  left join rated as e using (cluster)
  left join untold as u using (cluster)
  left join seen as n using (cluster)
),

judged as (
  select
    *,
    case
      when not is_told then 'untold'
      when is_moving and (lacking_partitions > 0 or slow_brokers is not null or late_groups > 0) then 'disturbs'
      when is_moving and is_stalled and not is_left_unknown and cluster not in (select d.cluster from done as d)
        then 'stalled'
      when is_moving and (silent_brokers > 0 or not is_isr_told or is_left_unknown) then 'unseen'
      when is_moving then 'moving'
      when is_still and left_throttle is not null then 'left_behind'
      when is_still and throttled is not null and is_rate_told is not true then 'left_perhaps'
      when is_still and (throttled is not null or (has_rates_left and throttled_brokers is not null)) then 'left_over'
      when unknown_topics > 0 then 'throttles_unknown'
      when
        throttled_brokers is not null or cluster in (select n.cluster from named as n where n.hour = :hour)
        then 'just_ended'
      else 'none'
    end as reason
  from weighed
)

select
  reason,
  cluster,
  moving_partitions,
  left_bytes,
  moving_bytes,
  copied_bytes_per_second,
  left_bytes / nullif(copied_bytes_per_second, 0) as moved_in_at_least_seconds,
  moving_since,
  lacking_partitions,
  slow_brokers,
  silent_brokers,
  late_groups,
  late_group_ids,
  lag_at_least_seconds,
  down_brokers,
  is_isr_told,
  written_bytes_per_second,
  case when is_moving then move_throttle else left_throttle end as throttle_bytes_per_second,
  case
    when reason = 'disturbs' and lower_throttle < least(busiest_bytes_per_second, move_throttle) then lower_throttle
    when reason = 'stalled' and move_throttle is not null then higher_throttle
  end as throttle_to_set_bytes_per_second,
  throttled_topics,
  throttled,
  throttled_brokers,
  rated_brokers,
  throttle_stands_seconds,
  unknown_topics,
  case
    when reason = 'disturbs' then (
      select jsonb_agg(distinct public.resource_key('broker', judged.cluster, b.broker_id))
      from (
        select one ->> 'broker_id' as broker_id from jsonb_array_elements(slow_brokers) as one
        union all
        select one from unnest(lacking_brokers) as one where lacking_partitions > 0
      ) as b
    )
  end as disturbs,
  case when reason = 'disturbs' then affected end as affected
from judged
