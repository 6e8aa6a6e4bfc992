/*
description: |
  For each finding that fires in an hour: which other finding may have caused it, and how strong the evidence is. A pair
  is weighed when a mechanism (sql/mechanisms.yaml) connects both detectors and the topology connects both resources.
  The strength is the product of five factors from 0 to 1: place, time, share, peers, and amount.

  Each file in sql/causes/weigh/ is one select, and other files read it by its file name. In reading order:
  mechanism, firing, cause, place, effect (what may cause what); group_partition, group_total, group_place,
  missing_replica, follower, replica, replica_place, follower_place (which parts are where); pair; explained, peer,
  late_rate, evidence, strength (how strong); ranked, circular (which cause is accepted).
params:
  accepted_strength:
    default: 0.6
    unit: strength
    why: From this strength on, the effect follows from its strongest cause and takes no ticket of its own.
  possible_strength:
    default: 0.3
    unit: strength
    why: From this strength on, a ticket names the cause as possible. Below, the cause is ruled out.
  lookback_hours:
    default: 6
    unit: hours
    why: An effect outlasts its cause while consumers catch up and burst credits refill. A cause that cleared earlier is not considered.
  replica_lookback_hours:
    default: 24
    unit: hours
    why: A broker that is down does not list its replicas. The list of the day before still names them.
  start_tolerance_minutes:
    default: 10
    unit: minutes
    why: Start times known to the minute come from sources with 5-minute readings. A cause may seem to start two readings late.
  start_tolerance_hours:
    default: 1
    unit: hours
    why: Findings are evaluated per hour. A cause may fire one hour after its effect.
  outdated_place_factor:
    default: 0.9
    unit: factor
    why: The topology comes from an earlier hour, as a resource on the path gave no response. Resources rarely move within a day.
  explained_share_min:
    default: 0.8
    unit: share
    why: A cause that explains this share of a peer's affected parts accounts for that peer.
  exposed_share:
    default: 0.2
    unit: share
    why: A consumer group with this share of its partitions at a place would be affected by a problem there.
  unknown_share_factor:
    default: 0.5
    unit: factor
    why: The affected parts are not reported. The cause stays possible and is not accepted.
  majority_share:
    default: 0.5
    unit: share
    why: More than half of the affected parts must be at the place before peers or probability can confirm the cause.
  majority_divisor:
    default: 6
    unit: divisor
    why: A confirmed majority scores the accepted strength plus its share divided by this. It stays below a full explanation.
  minority_weight:
    default: 0.7
    unit: factor
    why: A share below the mechanism's least share counts less than proportionally, and stays below the accepted strength.
  coincidence_excluded:
    default: 0.02
    unit: probability
    why: Below this probability, the affected parts are not at the place by coincidence.
  coincidence_unlikely:
    default: 0.1
    unit: probability
    why: Above this probability, the affected parts may be at the place by coincidence, unless peers confirm the cause.
  some_peers:
    default: 2
    unit: findings
    why: One firing finding is the effect itself. A second one at the same place makes coincidence unlikely.
  many_peers:
    default: 3
    unit: findings
    why: Fewer firing findings at a place do not confirm a cause that explains only a majority, or where everything is.
  clear_peer_ratio:
    default: 5
    unit: ratio
    why: So many firing findings per healthy one at the place confirm a cause that explains only a majority.
  undecided_share_factor:
    default: 0.55
    unit: factor
    why: The share is no evidence. The cause stays possible, just below the accepted strength.
  whole_factor:
    default: 0.7
    unit: factor
    why: The effect has all its parts at the place. It may have failed by itself, so healthy peers quickly rule the cause out.
  whole_confirmed_factor:
    default: 0.9
    unit: factor
    why: The effect has all its parts at the place, and every exposed peer fires as well.
  healthy_peer_divisor:
    default: 3
    unit: findings
    why: So many healthy peers per firing one at the place halve the strength.
  prior_peers:
    default: 2
    unit: findings
    why: Healthy peers assumed elsewhere, so that one or two firing ones in a small cluster do not rule the cause out.
  amount_needed:
    default: 0.5
    unit: share
    why: A cause that accounts for half of the measured amount is sufficient.
  contributes_margin:
    default: 0.01
    unit: strength
    why: A mechanism that only contributes stays this far below the accepted strength.
  causes_kept:
    default: 5
    unit: causes
    why: A ticket lists the likeliest causes. Readers do not compare more.
  chain_length_max:
    default: 20
    unit: findings
    why: A chain of causes longer than this is not searched for circles. Real chains have at most five findings.
*/
select
  r.effect,
  r.cause,
  r.mechanism,
  r.strength,
  r.rank = 1 and r.is_strong and r.effect not in (select c.effect from circular as c) as is_accepted,
  r.strength >= :possible_strength as is_possible,
  r.place_factor,
  r.time_factor,
  r.share_factor,
  r.peers_factor,
  r.amount_factor,
  r.place,
  r.path,
  r.seen_hour,
  r.cause_began,
  r.effect_began,
  r.explained_parts,
  r.affected_parts,
  r.parts_there,
  r.all_parts as parts,
  r.affected_there,
  r.healthy_there,
  r.affected_elsewhere,
  r.healthy_elsewhere,
  r.amount
from ranked as r
where r.rank <= :causes_kept
order by r.effect asc, r.rank asc
