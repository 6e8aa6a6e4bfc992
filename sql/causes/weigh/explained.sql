-- Effects that a cause explains for the most part.
select distinct
  mechanism,
  cause,
  detector,
  effect,
  resource
from pair
where parts in ('resource', 'named') or explained_parts >= :explained_share_min * affected_parts
