-- Knock-on delays: an aircraft lands more than an hour late, and its very next
-- flight leaves more than an hour late, at most 12 hours after. The flights
-- from New York in March 2013 hold 231 of them.
SELECT m.*, l.name AS airline, p.model
FROM (
  FROM flights
  DEFINE Late AS arr_delay_min > 60, Held AS dep_delay_min > 60
  PATTERN Late a : Held b      -- ':' is "immediately after", for one aircraft
  PARTITION BY tailnum
  ORDER BY sched_dep_utc, row_id
  WITHIN 12 HOURS
  RETURN a.tailnum AS tailnum, a.carrier AS carrier,
         a.flight AS flight, a.sched_dep_utc AS scheduled, a.dest AS dest,
         a.arr_delay_min AS arrived_late,
         b.flight AS next_flight, b.sched_dep_utc AS next_scheduled,
         b.dest AS next_dest, b.dep_delay_min AS left_late
) AS m
LEFT JOIN airlines AS l ON l.carrier = m.carrier
LEFT JOIN planes AS p ON p.tailnum = m.tailnum
ORDER BY m.scheduled, m.tailnum
