-- The five factors of each pair, and their product.
with weighed as (
  select
    *,
    case when is_outdated then :outdated_place_factor else 1 end as place_factor,
    case when is_later or is_too_early then 0 else 1 end as time_factor,
    case
      when parts in ('resource', 'named') then 1
      when explained_share is null then :unknown_share_factor
      when explained_share < least_share and joint_share >= least_share and is_largest then :accepted_strength
      -- Most of it is there, and that is no coincidence, or nearly all exposed peers are late as well.
      when
        explained_share < least_share and explained_share > :majority_share
        and (
          coincidence < :coincidence_excluded
          or (
            coincidence < :coincidence_unlikely and affected_there >= :many_peers
            and affected_there > :clear_peer_ratio * healthy_weight
          )
        )
        then :accepted_strength + explained_share / :majority_divisor
      when explained_share < least_share then :minority_weight * explained_share
      when parts in ('replica', 'partition', 'led') then explained_share
      -- A broker that leads all that the effect follows leads every missing part, whatever the cause is.
      when parts = 'follower' and expected_share = 1 then :undecided_share_factor
      -- All parts are there: the share is no evidence, so peers decide.
      when
        expected_share = 1 and affected_there >= :some_peers
        and ((affected_there >= :many_peers and healthy_there = 0) or peers_coincidence < :coincidence_excluded)
        then :whole_confirmed_factor
      when expected_share = 1 then :whole_factor
      -- So few are late that they may be there by coincidence, unless exposed peers are late as well.
      when
        coincidence > :coincidence_unlikely
        and not (
          affected_there >= :some_peers
          and (affected_there > healthy_weight or coalesce(peers_coincidence < :coincidence_excluded, false))
        )
        then :undecided_share_factor
      else explained_share
    end as share_factor,
    -- What cannot be a coincidence is not doubted for what is healthy there.
    case
      when parts in ('leader', 'member') and coincidence < :coincidence_excluded then 1
      else 1 / (1 + coalesce(healthy_weight, 0) / :healthy_peer_divisor / greatest(affected_there, 1))
    end as healthy_there_factor,
    -- Below 1 where peers fire elsewhere too, compared with how many of the exposed ones fire.
    greatest(
      0,
      1 - coalesce(
        affected_elsewhere / nullif(affected_elsewhere + healthy_elsewhere + :prior_peers, 0), 0
      ) / (greatest(affected_there, 1) / (greatest(affected_there, 1) + coalesce(healthy_there, 0)::double precision))
    ) as elsewhere_factor,
    -- What cannot be a coincidence, or what nearly all exposed peers confirm, is not doubted for what else is late.
    case
      when coincidence < :coincidence_excluded then 1
      when
        explained_share >= least_share and coincidence < :coincidence_unlikely and affected_there >= :many_peers
        and affected_there > :clear_peer_ratio * healthy_weight
        then 1
      else greatest(0, 1 - coalesce(late_elsewhere / nullif(late_there, 0), 0))
    end as late_elsewhere_factor,
    case when amount is not null then least(1, amount / :amount_needed) end as amount_factor
  from evidence
),

with_peers as (
  select
    *,
    case
      when parts in ('replica', 'follower', 'partition', 'led') or contributes or alone or amount is not null then 1
      when parts in ('leader', 'member') then healthy_there_factor * late_elsewhere_factor
      else healthy_there_factor * elsewhere_factor
    end as peers_factor
  from weighed
)

select
  *,
  least(
    place_factor * time_factor * share_factor * peers_factor * coalesce(amount_factor, 1),
    case when contributes then :accepted_strength - :contributes_margin else 1 end
  ) as strength
from with_peers
