-- Natural logarithm of n!, by Stirling's series; exact to a thousandth.
create or replace function public.ln_factorial(n double precision) returns double precision
language sql immutable parallel safe as $$
  select case when n < 1 then 0 else n * ln(n) - n + ln(2 * pi() * n) / 2 + 1 / (12 * n) - 1 / (360 * n * n * n) end
$$;
-- The chance that of `drawn` out of `total`, of which `marked` are marked, at least `found` are marked: the upper tail of
-- the hypergeometric distribution.
create or replace function public.chance_of(found bigint, drawn bigint, marked bigint, total bigint)
returns double precision language sql immutable parallel safe as $$
  select least(1, coalesce(sum(exp(
    public.ln_factorial(marked) - public.ln_factorial(x) - public.ln_factorial(marked - x)
    + public.ln_factorial(total - marked) - public.ln_factorial(drawn - x)
    - public.ln_factorial(total - marked - drawn + x)
    - public.ln_factorial(total) + public.ln_factorial(drawn) + public.ln_factorial(total - drawn)
  )), 0))
  from generate_series(greatest(found, drawn - (total - marked)), least(drawn, marked)) as x
$$;
