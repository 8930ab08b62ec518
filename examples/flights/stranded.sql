-- Cancelled, and nothing else to take: after a cancelled flight no other leaves the same airport for the same
-- destination in the next 12 hours. What must not happen stands last, so a match is known when its 12 hours have
-- passed; the end of the month counts as that. The flights from New York in March 2013 hold 227 of them.
SELECT m.*, l.name AS airline
FROM (
  FROM flights
  DEFINE Cancelled AS dep_utc IS NULL, Leaves AS dep_utc IS NOT NULL
  PATTERN Cancelled c ; !Leaves
  PARTITION BY origin, dest
  ORDER BY sched_dep_utc, row_id
  WITHIN 12 HOURS          -- a flight 12 hours later still counts; WITHIN < 12 HOURS would leave it out
  RETURN origin, dest, c.sched_dep_utc AS scheduled, c.carrier AS carrier, c.flight AS flight
) AS m
LEFT JOIN airlines AS l ON l.carrier = m.carrier
ORDER BY m.scheduled, m.origin, m.dest, m.carrier, m.flight
