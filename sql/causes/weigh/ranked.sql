-- The causes of each effect by rank, with one mechanism for each pair. Accepted strength comes first; then a transaction
-- that the group is known to wait for; then a place that explains just the affected parts before one that has the whole
-- effect; then strength; then the deeper layer.
select
  *,
  row_number() over (
    partition by effect
    order by
      is_strong desc, is_confirmed desc, parts in ('leader', 'member') and (expected_share = 1 or explained_share < least_share) asc,
      strength desc, parts = 'resource' asc, coincidence asc,
      array_position(
        array['cluster', 'volume', 'instance', 'broker', 'store', 'application', 'process', 'connector', 'topic',
          'group'],
        split_part(cause_resource, ':', 1)
      ) asc,
      cause_began asc, cause asc
  ) as rank
from (
  select distinct on (effect, cause)
    *,
    strength >= :accepted_strength as is_strong
  from strength
  order by effect asc, cause asc, strength desc, mechanism asc
) as one
