/*
title: Values of a state store changed their schema
resource_kind: store
owner_role: streaming
maturity: stable
reads: [metrics.state_store_hourly, metrics.state_store_change_hourly]
params:
  min_values: {default: 20, unit: values, why: "fewer of the old or of the new kind may be a slip, or chance; of registered schemas one is enough"}
  min_profiled: {default: 50, unit: values, why: "with fewer values a field can't be called required; a registered schema says it"}
  known_hours: {default: 24, unit: h, why: "constants of the day and of the night take turns: one is new, or gone, if a whole day knew nothing of it"}
  known_share: {default: 0.75, unit: ratio, why: "of today's values: a log that was much smaller a day ago couldn't have shown yet that only young records have a constant"}
  moves_ratio: {default: 0.5, unit: ratio, why: "of the time that passes: what begins later each hour is the age of records (an order is still new), not a release"}
  strict_readers: {default: 0, unit: "0 or 1", why: "1 where readers refuse unknown fields; most JSON readers don't"}
key_metrics: [breaks, old_values, new_values, old_last_offset, new_first_offset]
verdicts:
  breaks_restore:
    status: firing
    severity: critical
    message: "{% for c in breaking_changes | unique(attribute='path') %}{{ c.path }}: {{ c.change | words }}{% if c.old_type != c.new_type %} ({{ c.old_type or 'absent' }} → {{ c.new_type or 'absent' }}){% endif %}{{ ', ' if not loop.last }}{% endfor %}{% if breaking > 3 %} and {{ breaking.value - 3 }} more{% endif %} since {{ since }}. The log still holds {{ old_values }} old values beside {{ new_values }} new ones: the new release can't restore the old state."
    actions:
      - "Before {{ application_id }} restarts or rebalances, make its reader accept both kinds of {{ path }}, or rewrite the values of up to {{ old_last_at }} (the last is at {{ old_last_offset }}, partition and offset); otherwise the restore fails or loses them."
    commands: &the_values
      - "kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ topic }} --partition {{ new_partition }} --offset {{ new_offset }} --max-messages 1 --property print.key=true"
  breaks_rollback:
    status: firing
    severity: warning
    message: "{% for c in breaking_changes | unique(attribute='path') %}{{ c.path }}: {{ c.change | words }}{% if c.old_type != c.new_type %} ({{ c.old_type or 'absent' }} → {{ c.new_type or 'absent' }}){% endif %}{{ ', ' if not loop.last }}{% endfor %}{% if breaking > 3 %} and {{ breaking.value - 3 }} more{% endif %} since {{ since }}. The log still holds {{ old_values }} old values beside {{ new_values }} new ones: the previous release can't read the new state."
    actions:
      - "Don't roll {{ application_id }} back, and don't run both releases side by side, until its previous release accepts {{ path }} as it is from offset {{ new_first_offset }} (partition first) on."
    commands: *the_values
  breaks_some:
    status: firing
    severity: warning
    message: "{% for c in breaking_changes | unique(attribute='path') %}{{ c.path }}: {{ c.change | words }}{% if c.old_type != c.new_type %} ({{ c.old_type or 'absent' }} → {{ c.new_type or 'absent' }}){% endif %}{{ ', ' if not loop.last }}{% endfor %}{% if breaking > 3 %} and {{ breaking.value - 3 }} more{% endif %} since {{ since }}. The log still holds {{ old_values }} old values beside {{ new_values }} new ones: {% if breaks == 'restore' %}a release that insists on what is always there now, or on the constants that are left, can't restore the old state{% elif breaks == 'rollback' %}a previous release that insists on integers, or on the constants that it knows, can't read the new state, or cuts its fractions off{% else %}a release that insists on integers, on the constants that it knows, or on what is always there now, can't read both{% endif %}."
    actions:
      - "See what the releases of {{ application_id }} expect at {{ path }}: {% if breaks == 'rollback' %}one that takes only integers, or only the constants that it knows, can't be rolled back to{% else %}a default for what old values lack, or a constant that is kept, lets the values of up to {{ old_last_offset }} (partition and offset) be restored{% endif %}."
    commands: *the_values
  compatible: {status: ok, message: "{{ values_profiled }} values looked at, {{ versions | counted('schema version') }} in the log, {{ harmless | counted('compatible change') }}."}
  unread: {status: unknown, message: "Its log couldn't be read; see the hour's coverage."}
  empty: {status: unknown, message: "Its log holds no values.", is_not_applicable: true}
  uncompared: {status: unknown, message: "It can't be compared: {{ uncompared }}."}
  registry_missing: {status: unknown, message: "Its values are framed by a Schema Registry that isn't read."}
  not_json: {status: unknown, message: "Its values are {{ value_format }}, not JSON.", is_not_applicable: true}
  few: {status: unknown, message: "{{ values_profiled }} values are too few to judge."}
  garbled: {status: unknown, message: "{{ unreadable_values }} of {{ values_profiled }} values aren't {{ value_format }}."}
description: |
  A store's values lie in its changelog. From the values that are still in the log it is learnt for each JSON path how
  often it is there, and with which types; values that look alike make a version, and the newest version is compared with
  every older one. Values framed by a Schema Registry are compared by their registered schemas.

  Critical: new code can't restore the old state. A type changed or got narrower, a field that isn't in old values is
  always there now, null isn't seen any more. Warning: old code can't read the new state, so that a rollback or a rolling
  deploy breaks: a field that was always there went away, a type got wider, null came. A field that is only added, or
  whose going hurts strict readers only, is information unless strict_readers says so. What hurts only some readers is a
  warning: a field that is always there now, integers that became fractions, a constant that began or vanished among
  strings that are few and repeat, and what a release that was rolled back left in the log.

  A few values may be a slip or chance: min_values of the old and of the new kind must be there, and min_profiled looked
  at before a field is called required. While the log holds both kinds of values, the finding stands.
causes:
  schema_drift_stops_threads: [breaks_restore, breaks_some]
clear_after_hours: 2
runbook: |
  1. Read which path changed, from which offset on, and compare the two examples (or the two registered schemas) with
     what the application's current and previous release expect.
  2. Critical: the release that writes the new values can't restore the old ones. Before any restart or rebalance, give
     it a reader that accepts both (a default for a missing field, a union for a changed type), or rewrite the old values:
     read them, upgrade them, and put them back through the application.
  3. If the state may be rebuilt: stop the application, run kafka-streams-application-reset with its application id,
     delete the local state and start the new release.
  4. Warning: don't roll back to, and don't keep running side by side, a release that can't read the new values.
  5. The ticket closes once the log holds no old values any more: compaction took them, or they were rewritten.
limitations: |
  The rules know values, not code: a reader with defaults or a lenient parser may live with what is called breaking.
  Strings that are few and repeat are taken for an enumeration: names of a few shops are as well. A constant of the
  weekend is told once as new, while the log knows no weekend before. In a log that has grown by a third since
  yesterday no constant is told. Inside arrays a value counts, not each element: a null, or a field that isn't there,
  is seen only where no element has more. Values framed by a Schema Registry are judged by their registered schemas,
  not by what they hold; a schema id that no registry knows can't be judged. A long counter and a frame of 8 bytes
  look alike where the id isn't known. In a large log the values are a sample; a version of fewer than 0.1 % of them
  may be missed. In a compacted log old records are final states: a field that only young records lack looks like one
  that was removed, if it is gone at a stroke. Who asks the store through the application (interactive queries) isn't
  seen.
*/
-- Constants that a whole day knew nothing of, before or since, and whose place in the log stands still.
with steady_constant as (
  select
    c.hour,
    c.cluster,
    c.topic,
    c.path,
    c.change,
    c.old_version,
    c.new_version,
    case c.change
      when 'constant_added' then c.new_first_at - s.first_at
      else s.last_at - c.old_last_at
    end >= make_interval(hours => :known_hours)
    and was.is_known
    and not coalesce(was.moves, false) as is_told
  from metrics.state_store_change_hourly as c
  inner join metrics.state_store_hourly as s using (hour, cluster, topic)
  cross join lateral (
    select
      bool_or(
        b.hour <= c.hour - make_interval(hours => :known_hours)
        and b.values_profiled >= s.values_profiled * :known_share
      ) as is_known,
      bool_or(
        case c.change when 'constant_added' then c.new_first_at - a.new_first_at else c.old_last_at - a.old_last_at end
        > (c.hour - a.hour) * :moves_ratio
      ) as moves
    from metrics.state_store_hourly as b
    left join metrics.state_store_change_hourly as a
      on
        b.hour = a.hour and c.cluster = a.cluster and c.topic = a.topic and c.path = a.path and c.change = a.change
        and string_to_array(coalesce(c.old_type, c.new_type), ', ')
        && string_to_array(coalesce(a.old_type, a.new_type), ', ')
    where
      b.cluster = c.cluster and b.topic = c.topic and b.values_profiled > 0
      and b.hour >= c.hour - make_interval(hours => :known_hours) * 1.25
      and b.hour <= c.hour - make_interval(hours => :known_hours) / 4
  ) as was
  where c.hour = :hour and c.change in ('constant_added', 'constant_removed')
),

change as (
  select
    *,
    row_number() over (partition by cluster, topic order by weight, old_version, path) as rank
  from (
    select
      *,
      -- 1: new code can't restore old state; 2: old code can't read new state; 3: some code can't; 4: breaks nothing.
      case
        when old_schema_id is null and least(old_count, new_count) < :min_values then 4
        when change in ('constant_added', 'constant_removed') and is_told is not true then 4
        when strict_only and :strict_readers = 0 then
          case
            when
              old_schema_id is null
              and change in (
                'field_made_required', 'type_widened', 'constant_added', 'constant_removed', 'field_rolled_back',
                'nullability_rolled_back', 'fractions_rolled_back'
              ) then 3
            else 4
          end
        when breaks_backward then 1
        when breaks_forward then 2
        else 4
      end as weight
    from metrics.state_store_change_hourly
    left join steady_constant using (hour, cluster, topic, path, change, old_version, new_version)
    where hour = :hour
  ) as weighed
),

by_store as (
  select
    cluster,
    topic,
    min(weight) as worst,
    count(*) filter (where weight < 4) as breaking,
    count(*) filter (where weight = 4) as harmless,
    bool_or(breaks_backward and weight < 4) as restore_breaks,
    bool_or(breaks_forward and weight < 4) as rollback_breaks,
    min(new_first_at) filter (where weight < 4) as since,
    json_agg(
      json_build_object('path', path, 'change', change, 'old_type', old_type, 'new_type', new_type) order by rank
    ) filter (where weight < 4 and rank <= 3) as breaking_changes,
    json_agg(
      json_strip_nulls(json_build_object(
        'path', path, 'change', change, 'old_type', old_type, 'new_type', new_type,
        'breaks_restore', breaks_backward and weight < 4, 'breaks_rollback', breaks_forward and weight < 4,
        'for_strict_readers_only', strict_only,
        'old_values', old_count, 'old_schema', old_schema_id, 'old_last_offset', old_last_offset,
        'old_last_at', old_last_at, 'old_example', old_example,
        'new_values', new_count, 'new_schema', new_schema_id, 'new_first_offset', new_first_offset,
        'new_first_at', new_first_at, 'new_example', new_example
      )) order by rank
    ) filter (where rank <= 20) as changes
  from change
  group by cluster, topic
),

-- Who reads it is told, not judged: it comes from the newest hour known, and to know nothing of groups blocks nothing.
groups_known as (
  select
    cluster,
    max(hour) as hour
  from inventory.consumer_group_hourly
  where hour > :hour - interval '24 hours' and hour <= :hour
  group by cluster
),

readers as (
  select
    s.cluster,
    s.topic,
    json_agg(
      json_build_object('group', g.group_id, 'state', lower(g.state), 'members', g.members)
      order by g.group_id = s.application_id desc, g.group_id asc
    ) as read_by
  from metrics.state_store_hourly as s
  inner join groups_known as k on s.cluster = k.cluster
  inner join inventory.consumer_group_hourly as g on k.cluster = g.cluster and k.hour = g.hour
  where
    s.hour = :hour
    and (
      g.group_id = s.application_id
      or exists (
        select 1
        from metrics.consumer_partition_hourly as p
        where p.hour = g.hour and p.cluster = g.cluster and p.group_id = g.group_id and p.topic = s.topic
      )
    )
  group by s.cluster, s.topic
),

judged as (
  select
    s.*,
    b.worst,
    coalesce(b.breaking, 0) as breaking,
    coalesce(b.harmless, 0) as harmless,
    b.restore_breaks,
    b.rollback_breaks,
    b.since,
    b.breaking_changes,
    b.changes,
    c.path,
    c.old_type,
    c.new_type,
    c.old_count as old_values,
    c.new_count as new_values,
    c.old_last_offset,
    c.old_last_at,
    c.new_first_offset,
    coalesce(r.read_by, json_build_array(json_build_object('group', s.application_id))) as read_by
  from metrics.state_store_hourly as s
  left join by_store as b on s.cluster = b.cluster and s.topic = b.topic
  left join change as c on s.cluster = c.cluster and s.topic = c.topic and c.rank = 1
  left join readers as r on s.cluster = r.cluster and s.topic = r.topic
  where s.hour = :hour
)

select
  case
    when records is null then 'unread'
    when values_profiled = 0 then 'empty'
    when worst = 1 then 'breaks_restore'
    when worst = 2 then 'breaks_rollback'
    when worst = 3 then 'breaks_some'
    when uncompared is not null then 'uncompared'
    when format = 'framed' and schemas is null then 'registry_missing'
    when format in ('string', 'binary') then 'not_json'
    when values_profiled < :min_profiled and format <> 'framed' then 'few'
    when unreadable_values * 2 > values_profiled then 'garbled'
    else 'compatible'
  end as reason,
  cluster,
  topic,
  application_id,
  store,
  case
    when restore_breaks and rollback_breaks then 'restore and rollback'
    when restore_breaks then 'restore'
    when rollback_breaks then 'rollback'
    else 'nothing'
  end as breaks,
  path,
  old_type,
  new_type,
  old_values,
  new_values,
  old_last_offset,
  old_last_at,
  new_first_offset,
  split_part(new_first_offset, ':', 1) as new_partition,
  split_part(new_first_offset, ':', 2) as new_offset,
  since,
  breaking,
  harmless,
  breaking_changes,
  changes,
  coalesce(versions, 1) as versions,
  format as value_format,
  windowed,
  values_profiled,
  values_total,
  unreadable_values,
  uncompared,
  coalesce(schemas, '[]') as registered_schemas,
  read_by
from judged
