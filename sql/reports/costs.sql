-- Costs, and savings of open advice, in the newest gathered hour: the sum of each kind, and its largest lines.
select
  kind,
  whose,
  resources,
  without_price,
  usd_per_month,
  sum(usd_per_month) over of_kind as kind_usd_per_month,
  sum(without_price) over of_kind as kind_without_price
from public.costs
window of_kind as (partition by kind)
order by kind asc, usd_per_month desc nulls last, whose asc
