-- Costs, and savings of open advice, in the newest gathered hour: the sum of each kind, and its largest lines: volumes by
-- application or cluster, logs by owner, application, or cluster, advice by detector. `owner`: only those of one owner;
-- '': unassigned.
with line as (
  select
    kind,
    case kind
      when 'volumes' then coalesce(application, cluster) when 'logs' then coalesce(owner, application, cluster) else title
    end as charged_to,
    sum(resources) as resources,
    sum(without_price) as without_price,
    sum(usd_per_month) as usd_per_month
  from public.costs
  where (cast(:owner as text) is null or coalesce(owner, '') = cast(:owner as text))
  group by kind, charged_to
)

select
  kind,
  charged_to,
  resources,
  without_price,
  usd_per_month,
  sum(usd_per_month) over of_kind as kind_usd_per_month,
  sum(without_price) over of_kind as kind_without_price,
  price.as_of as prices_as_of,
  price.as_of < price.hour::date - 90 as prices_are_old
from line
cross join (
  select
    newest.hour,
    min(p.as_of) as as_of
  from (select max(hour) as hour from inventory.volume_hourly) as newest
  left join inventory.ebs_price as p
    on p.region in (select v.region from inventory.volume_hourly as v where v.hour = newest.hour)
  group by newest.hour
) as price
window of_kind as (partition by kind)
order by kind asc, usd_per_month desc nulls last, charged_to asc
