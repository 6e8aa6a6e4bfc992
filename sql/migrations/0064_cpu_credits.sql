-- CPU credits of burstable instances: what is left of them, and what an unlimited instance borrows.
alter table metrics.instance_health_hourly
  add column is_burstable boolean,  -- Whether its type earns CPU credits (T2, T3, T4g)
  add column cpu_credits double precision,  -- CPUCreditBalance, the latest of the hour: minutes of a whole vCPU; null: not told
  add column cpu_credits_most double precision,  -- CPUCreditBalance, the highest of the hour
  add column cpu_credits_borrowed double precision,  -- CPUSurplusCreditBalance, the latest: what it has borrowed, and may still earn back
  add column cpu_credits_charged double precision;  -- CPUSurplusCreditsCharged: what was borrowed in the hour for money
