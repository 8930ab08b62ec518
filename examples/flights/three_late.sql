-- Aircraft that leave an hour late three times in a row, within two days.
SELECT m.tailnum, count(*) AS times, max(m.last_delay) AS worst
FROM (
  FROM flights
  DEFINE Late AS dep_delay_min >= 60
  PATTERN Late a : Late b : Late c
  PARTITION BY tailnum
  ORDER BY sched_dep_utc, row_id
  WITHIN 2 DAYS
  RETURN a.tailnum AS tailnum, c.dep_delay_min AS last_delay
) AS m
GROUP BY m.tailnum
ORDER BY times DESC, m.tailnum
