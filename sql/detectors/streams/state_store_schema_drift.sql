/*
title: State store schema drift
resource_kind: store
owner_role: streaming
maturity: stable
reads: [metrics.state_store_hourly, metrics.state_store_change_hourly]
params:
  min_values:
    default: 20
    unit: values
    why: "fewer values of either schema may be an error or chance; one is enough for a registered schema"
  min_profiled:
    default: 50
    unit: values
    why: "with fewer values a field cannot be inferred as required; a registered schema states it"
  known_hours:
    default: 24
    unit: h
    why: "enum constants may alternate over a day: one is new, or removed, if it was absent for a whole day"
  known_share:
    default: 0.75
    unit: ratio
    why: "of today's values: a log that was much smaller a day ago does not show which constants belong to young records"
  moves_ratio:
    default: 0.5
    unit: ratio
    why: "of elapsed time: a first occurrence that moves with the clock depends on record age (a new order), not on a release"
  strict_readers: {default: 0, unit: "0 or 1", why: "1 if readers reject unknown fields; most JSON readers accept them"}
key_metrics: [breaks, old_values, new_values, old_last_offset, new_first_offset]
verdicts:
  breaks_restore:
    status: firing
    severity: critical
    message: >
      Store {{ store }} of {{ application_id }} has {{ breaking | counted("breaking change") }} (worst: {{ path }}){% if since %} since {{ since }}{% endif %}: the new
      release cannot restore {{ old_values | counted("old value") }}.
    details: &details
      - >
        {% for c in breaking_changes | unique(attribute='path') %}{{ c.path }}: {{ c.change | words }} ({{ c.types }}).
        {% endfor %}
      - "{% if breaking > 3 %}{{ breaking.value - 3 }} more changes are listed with the evidence.{% endif %}"
      - "The changelog holds {{ old_values }} old values of {{ path }} and {{ new_values }} new ones."
    impact: "The next restart or rebalance of {{ application_id }} fails during restore, or loses these values."
    actions:
      - "Do not restart {{ application_id }} until its reader accepts both schemas of {{ path }}."
      - >
        Alternatively rewrite the values up to {{ old_last_at }}; the last one is at {{ old_last_offset }} (partition:offset).
      - "Prevent it: test each release against the changelog of the previous one."
    commands: &commands
      - >
        {% if new_offset.value is not none %}kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic
        {{ topic }} --partition {{ new_partition }} --offset {{ new_offset }} --max-messages 1
        --property print.key=true{% endif %}
  breaks_rollback:
    status: firing
    severity: warning
    message: >
      Store {{ store }} of {{ application_id }} has {{ breaking | counted("breaking change") }} (worst: {{ path }}){% if since %} since {{ since }}{% endif %}: the previous
      release cannot read {{ new_values | counted("new value") }}.
    details: *details
    impact: "A rollback fails, and during a rolling upgrade the old instances fail."
    actions:
      - "Do not roll {{ application_id }} back, and do not run both releases at once."
      - >
        Make the previous release accept {{ path }} as written from {{ new_first_offset }} (partition:offset) on before any
        rollback.
    commands: *commands
  breaks_some_readers:
    status: firing
    severity: warning
    message: >
      Store {{ store }} of {{ application_id }} has {{ breaking | counted("change") }} (worst: {{ path }}){% if since %} since {{ since }}{% endif %} that strict readers do
      not accept (breaks {{ breaks }}).
    details:
      - >
        {% for c in breaking_changes | unique(attribute='path') %}{{ c.path }}: {{ c.change | words }} ({{ c.types }}).
        {% endfor %}
      - "{% if breaking > 3 %}{{ breaking.value - 3 }} more changes are listed with the evidence.{% endif %}"
      - "The changelog holds {{ old_values }} old values of {{ path }} and {{ new_values }} new ones."
      - >
        {% if 'restore' in breaks.value %}A release that requires fields that are always present now, or accepts only the
        remaining constants, cannot restore the old values.{% endif %}
      - >
        {% if 'rollback' in breaks.value %}A previous release that accepts only integers, or only known constants, cannot read
        the new values, or truncates fractions.{% endif %}
    impact: "Depending on its reader, {{ application_id }} fails to restore, or a rollback fails."
    actions:
      - "Check what the current and the previous release of {{ application_id }} accept at {{ path }}."
      - >
        {% if 'restore' in breaks.value %}Before a restart, add a default for missing fields and keep removed constants: then
        values up to {{ old_last_offset }} (partition:offset) restore.{% endif %}
      - >
        {% if 'rollback' in breaks.value %}Do not roll back to a release that accepts only integers or only the known
        constants.{% endif %}
    commands: *commands
  compatible:
    status: ok
    message: >
      Store {{ store }} of {{ application_id }} has {{ versions | counted("schema version") }} and
      {{ compatible_changes | counted("compatible change") }} in {{ values_profiled }} profiled values.
  log_not_readable: {status: unknown, message: "Not evaluated: changelog {{ topic }} could not be read; see Data coverage."}
  empty: {status: unknown, message: "Not applicable: changelog {{ topic }} holds no values.", is_not_applicable: true}
  not_comparable: {status: unknown, message: "Not evaluated: values of {{ topic }} cannot be compared: {{ uncompared }}."}
  registry_missing:
    status: unknown
    message: "Not evaluated: values of {{ topic }} refer to a Schema Registry that is not configured."
  not_json: {status: unknown, message: "Not applicable: values of {{ topic }} are {{ value_format }}, not JSON.", is_not_applicable: true}
  too_few_values: {status: unknown, message: "Not evaluated: changelog {{ topic }} has only {{ values_profiled }} values."}
  values_not_readable:
    status: unknown
    message: "Not evaluated: {{ unreadable_values }} of {{ values_profiled }} values of {{ topic }} are not valid {{ value_format }}."
description: |
  The values of a store are in its changelog. For each JSON path the profile contains how often it is present, and with which
  types. Values of the same shape form a version; the newest version is compared with every older one. Values framed by a
  Schema Registry are compared by their registered schemas.

  Critical: new code cannot restore the old state. A type changed or was narrowed, a field that old values do not have is
  always present now, or null no longer occurs. Warning: old code cannot read the new state, so that a rollback or a rolling
  upgrade breaks: a required field was removed, a type was widened, or null occurs. An added field, or a removal that affects
  strict readers only, fires only with `strict_readers`. A change that affects some readers only is a warning: a field that is
  always present now, integers that became fractions, a constant that was added to or removed from an enumeration, and values
  that a rolled-back release left in the log.

  A few values may be an error or chance: `min_values` of the old and of the new schema must be present, and `min_profiled`
  profiled before a field counts as required. The finding fires for as long as the log holds both kinds of values.
causes:
  schema_drift_stops_threads: [breaks_restore, breaks_some_readers]
clear_after_hours: 2
runbook: |
  ## Meaning
  The values of a state store changed their schema while values of the old schema remain in its changelog.
  ## Impact
  Critical: the new release cannot restore the old values. Warning: a rollback or a rolling upgrade fails.
  ## Diagnosis
  1. Read which path changed, from which offset on, and compare both examples (or both registered schemas).
  2. Compare them with what the current and the previous release of the application accept.
  ## Mitigation
  1. Critical: before any restart or rebalance, deploy a reader that accepts both schemas (a default for a missing field, a
     union for a changed type), or rewrite the old values through the application.
  2. If the state may be rebuilt: stop the application, run kafka-streams-application-reset, delete the local state, and
     start the new release.
  3. Warning: do not roll back to, or run next to, a release that cannot read the new values.
  4. The finding resolves once compaction, or rewriting, removed the old values.
limitations: |
  The detector knows values, not code: a reader with defaults or a lenient parser may accept what is called breaking. Strings
  with few, repeated values are treated as an enumeration: shop names are as well. A constant of the weekend is reported once
  as new, while the log knows no earlier weekend. In a log that grew by a third since yesterday, constants are not reported.
  In arrays, the array counts, not each element: a null or a missing field is visible only where no element has one. Framed
  values are compared by registered schemas, not by content; unknown schema ids are not evaluated. A long counter and a frame
  of 8 bytes are indistinguishable if the id is unknown. Values of a large log are sampled: a version of fewer than 0.1 % of
  them may be missed. In a compacted log, old records are final states: a field that only young records have resembles a
  removed one if it disappears at once. Interactive queries by other clients are not covered.
*/
with change as (
  select
    *,
    row_number() over (partition by cluster, topic order by impact, old_version, path) as rank
  from (
    select
      *,
      -- 1: new code cannot restore old state; 2: old code cannot read new state; 3: some code cannot; 4: compatible.
      case
        when old_schema_id is null and least(old_count, new_count) < :min_values then 4
        when change in ('constant_added', 'constant_removed') and confirmed.is_confirmed is not true then 4
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
      end as impact
    from metrics.state_store_change_hourly
    left join public.confirmed_constants(:hour, cast(:known_hours as integer), :known_share, :moves_ratio) as confirmed
      using (cluster, topic, path, change, old_version, new_version)
    where hour = :hour
  ) as weighed
),

store_change as (
  select
    cluster,
    topic,
    min(impact) as worst,
    count(*) filter (where impact < 4) as breaking,
    count(*) filter (where impact = 4) as compatible_changes,
    bool_or(breaks_backward and impact < 4) as restore_breaks,
    bool_or(breaks_forward and impact < 4) as rollback_breaks,
    min(new_first_at) filter (where impact < 4) as since,
    json_agg(
      json_build_object(
        'path', path, 'change', change, 'types',
        case
          when old_type is distinct from new_type
            then coalesce(old_type, 'absent') || ' → ' || coalesce(new_type, 'absent')
          else old_type
        end
      ) order by rank
    ) filter (where impact < 4 and rank <= 3) as breaking_changes,
    json_agg(
      json_strip_nulls(json_build_object(
        'path', path, 'change', change, 'old_type', old_type, 'new_type', new_type,
        'breaks_restore', breaks_backward and impact < 4, 'breaks_rollback', breaks_forward and impact < 4,
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

-- Readers are context, not evidence: they come from the newest hour known, and missing groups block nothing.
newest_group_hour as (
  select
    cluster,
    max(hour) as hour
  from inventory.consumer_group_hourly
  where hour > :hour - interval '24 hours' and hour <= :hour
  group by cluster
),

reader as (
  select
    s.cluster,
    s.topic,
    json_agg(
      json_build_object('group', g.group_id, 'state', lower(g.state), 'members', g.members)
      order by g.group_id = s.application_id desc, g.group_id asc
    ) as read_by
  from metrics.state_store_hourly as s
  inner join newest_group_hour as k on s.cluster = k.cluster
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

evaluated as (
  select
    s.*,
    b.worst,
    coalesce(b.breaking, 0) as breaking,
    coalesce(b.compatible_changes, 0) as compatible_changes,
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
  left join store_change as b on s.cluster = b.cluster and s.topic = b.topic
  left join change as c on s.cluster = c.cluster and s.topic = c.topic and c.rank = 1
  left join reader as r on s.cluster = r.cluster and s.topic = r.topic
  where s.hour = :hour
)

select
  case
    when num_nulls(records, values_profiled, unreadable_values) > 0 then 'log_not_readable'
    when values_profiled = 0 then 'empty'
    when worst = 1 then 'breaks_restore'
    when worst = 2 then 'breaks_rollback'
    when worst = 3 then 'breaks_some_readers'
    when uncompared is not null then 'not_comparable'
    when format = 'framed' and schemas is null then 'registry_missing'
    when format in ('string', 'binary') then 'not_json'
    when values_profiled < :min_profiled and format <> 'framed' then 'too_few_values'
    when unreadable_values * 2 > values_profiled then 'values_not_readable'
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
  compatible_changes,
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
from evaluated
