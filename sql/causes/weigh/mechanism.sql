-- The mechanisms of sql/mechanisms.yaml; `kinds` are the resource kinds on the path from a cause to its place of action.
select
  mechanism,
  path as kinds,
  parts,
  least_share,
  within_hours,
  amount,
  if_metric,
  effect_if,
  at_stable_offset,
  contributes,
  alone
from jsonb_to_recordset(cast(:mechanisms as jsonb)) as (
  mechanism text, path text[], parts text, least_share double precision, within_hours double precision,
  amount text, if_metric text, effect_if jsonb, at_stable_offset boolean, contributes boolean, alone boolean
)
