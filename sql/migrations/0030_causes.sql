-- Which finding in alarm may have caused which, per hour.
create table detect.cause (
  hour timestamptz not null,  -- Start of the hour (UTC)
  effect text not null,  -- Fingerprint of the finding in alarm
  cause text not null,  -- Fingerprint of what may have caused it
  mechanism text not null,  -- How: a key of sql/mechanisms.yaml
  strength double precision not null,  -- Product of the five factors, 0 to 1: from 0.6 on the cause is accepted, from 0.3 on possible
  is_accepted boolean not null,  -- The effect follows from this cause; of an effect one at most
  place_factor double precision not null,  -- 1; less where the hour's own topology isn't known
  time_factor double precision not null,  -- 1, or 0 where the cause is younger, or was over too long before
  share_factor double precision not null,  -- How much of what is hit the place explains, against chance
  siblings_factor double precision not null,  -- How others fare that hang on the same place, and those that don't
  amount_factor double precision,  -- How much of the effect the cause accounts for; null: it isn't measured
  way text[] not null,  -- Keys of the things from the cause to the place at which it acts
  seen_hour timestamptz not null,  -- Hour that told how these hang together (UTC)
  sentence text not null,  -- Why we think so
  figures jsonb not null,  -- What the factors were computed from
  weighed_at timestamptz not null,  -- When (UTC)
  primary key (hour, effect, cause)
) partition by range (hour);
create index evaluation_alarm on detect.evaluation (hour) where status = 'alarm';
