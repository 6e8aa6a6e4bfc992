-- Findings that fire in the hour with a reason that a mechanism leads to, where that mechanism has a place of action.
-- `parts` says which parts of the finding the place has to explain.
with effect_reason as (
  select * from jsonb_to_recordset(cast(:effects as jsonb)) as (mechanism text, detector text, reasons text[])
)

select
  r.mechanism,
  m.parts,
  m.at_stable_offset,
  f.fingerprint,
  f.detector,
  f.resource,
  f.cluster,
  f.identity,
  f.affected,
  b.began,
  detect.since_of(f.metrics) as since
from firing as f
inner join effect_reason as r on f.detector = r.detector and f.reason = any(r.reasons)
inner join mechanism as m on r.mechanism = m.mechanism
cross join lateral detect.firing_began(f.fingerprint, r.reasons, f.hour) as b
-- An array, as a join with many rows of one value would compare each with each.
where
  f.hour = :hour
  and coalesce(
    (
      select bool_and(f.metrics ->> i.key = i.value)
      from jsonb_each_text(nullif(m.effect_if, 'null')) as i
    ),
    true
  )
  and r.mechanism = any(array(select distinct p.mechanism from place as p))
