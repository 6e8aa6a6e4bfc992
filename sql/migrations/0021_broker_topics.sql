-- A topic on a broker in an hour: what the broker counted of it, and its last reading, from which the next hour counts on.
create table metrics.broker_topic_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster
  endpoint text not null,  -- Address of the broker's agent, without credentials
  topic text not null,  -- Topic
  at timestamptz not null,  -- When it was last read (UTC)
  bytes_in double precision,  -- Bytes produced in the time that broker_hourly.covered_seconds says; null: can't be said
  bytes_out double precision,  -- Bytes fetched by consumers in that time
  messages_in double precision,  -- Messages produced in that time
  bytes_in_total double precision,  -- Counter of bytes produced, as last read
  bytes_out_total double precision,  -- Counter of bytes fetched by consumers, as last read
  messages_in_total double precision,  -- Counter of messages produced, as last read
  log_bytes double precision,  -- Size of its logs there
  primary key (hour, cluster, endpoint, topic) with (fillfactor = 100)
) partition by range (hour);

-- What broker_sample held of topics, a row for each reading of each figure, becomes a row an hour.
do $$
declare
  day record;
begin
  for day in
    select cast(begins at time zone 'UTC' as date) as begins from (
      select
        (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''(.*)''\) TO'))[1]::timestamptz as begins
      from pg_inherits as i inner join pg_class as c on i.inhrelid = c.oid
      where i.inhparent = 'metrics.broker_sample'::regclass
    ) as partition
    where begins is not null
  loop
    execute format(
      'create table if not exists metrics.broker_topic_sample_%s partition of metrics.broker_topic_sample'
      ' for values from (%L) to (%L)',
      to_char(day.begins, 'YYYYMMDD'), day.begins::timestamp at time zone 'UTC',
      (day.begins + 1)::timestamp at time zone 'UTC'
    );
  end loop;
end
$$;
insert into metrics.broker_topic_sample
(hour, cluster, endpoint, topic, at, bytes_in_total, bytes_out_total, messages_in_total, log_bytes)
select
  hour, cluster, endpoint, labels::jsonb ->> 'topic', max(at),
  (array_agg(value order by at desc) filter (where metric = 'bytes_in_total' and value is not null))[1],
  (array_agg(value order by at desc) filter (where metric = 'bytes_out_total' and value is not null))[1],
  (array_agg(value order by at desc) filter (where metric = 'messages_in_total' and value is not null))[1],
  max(value) filter (where metric = 'log_bytes')
from metrics.broker_sample
where labels like '{"topic": %' and metric in ('bytes_in_total', 'bytes_out_total', 'messages_in_total', 'log_bytes')
group by hour, cluster, endpoint, labels::jsonb ->> 'topic';
delete from metrics.broker_sample where labels like '{"topic": %';
