-- Probability that of `drawn` out of `total` elements, `marked` of which are marked, at least `hits` are marked by chance:
-- the upper tail of the hypergeometric distribution.
create or replace function public.coincidence_probability(hits bigint, drawn bigint, marked bigint, total bigint)
returns double precision language plpgsql immutable parallel safe as $$
declare
  -- The probability of the smallest possible number, as a logarithm; each further one follows from its predecessor.
  least_marked bigint := greatest(0, drawn - (total - marked));
  log_chance double precision := 0;
  tail double precision := 0;
begin
  if hits is null or drawn is null or marked is null or total is null then
    return null;
  end if;
  if least_marked = 0 then
    for i in 0 .. drawn - 1 loop
      log_chance := log_chance + ln((total - marked - i)::double precision / (total - i));
    end loop;
  else
    for i in 0 .. total - drawn - 1 loop
      log_chance := log_chance + ln((marked - i)::double precision / (total - i));
    end loop;
  end if;
  for x in least_marked .. least(drawn, marked) loop
    if x >= hits then
      tail := tail + exp(log_chance);
    end if;
    if x < least(drawn, marked) then
      log_chance := log_chance
        + ln((marked - x)::double precision * (drawn - x) / ((x + 1)::double precision * (total - marked - drawn + x + 1)));
    end if;
  end loop;
  return least(1, tail);
end
$$;
