-- Effects that would follow from themselves: of each circle of causes, the effect that began first keeps no cause.
with recursive chosen as (
  select
    effect,
    cause,
    effect_began
  from ranked
  where rank = 1 and is_strong
),

chain as (
  select
    effect as beginning,
    effect_began,
    cause as reached,
    array[effect] as passed
  from chosen
  union all
  select
    c.beginning,
    c.effect_began,
    n.cause,
    c.passed || n.effect
  from chain as c
  inner join chosen as n on c.reached = n.effect
  where c.reached <> all(c.passed) and cardinality(c.passed) < :chain_length_max
)

select distinct on (members) beginning as effect
from (
  select
    c.beginning,
    c.effect_began,
    (select array_agg(one order by one) from unnest(c.passed) as one) as members
  from chain as c
  where c.reached = c.beginning
) as round_trip
order by members asc, effect_began asc, beginning asc
