-- Worsening: three consecutive flights of one aircraft, each delayed more than the one before, within a day.
-- The flights of March 2013 from New York hold 112 of them.
FROM flights
DEFINE Delayed AS dep_delay_min > 0
PATTERN Delayed a : Delayed b : Delayed c
WHERE a.dep_delay_min < b.dep_delay_min AND b.dep_delay_min < c.dep_delay_min
PARTITION BY tailnum
ORDER BY sched_dep_utc, row_id
WITHIN 24 HOURS
RETURN a.tailnum AS tailnum, a.dep_delay_min AS first, b.dep_delay_min AS second, c.dep_delay_min AS third
