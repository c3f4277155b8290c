-- The twenty bursts that waited longest, with the causes of their waits.
WITH worst AS (
    SELECT host, display, day, session, burst, program, waited_ns
    FROM bursts
    ORDER BY waited_ns DESC, host, display, session, burst
    LIMIT 20
)
SELECT worst.host, worst.display, worst.day, worst.session, worst.burst, worst.program, worst.waited_ns,
       waits.cause, waits.by_program, waits.request, CAST(sum(waits.ns) AS BIGINT) AS ns
FROM worst
JOIN waits ON waits.host = worst.host AND waits.display = worst.display AND waits.day = worst.day
          AND waits.session = worst.session AND waits.burst = worst.burst
GROUP BY worst.host, worst.display, worst.day, worst.session, worst.burst, worst.program, worst.waited_ns,
         waits.cause, waits.by_program, waits.request
ORDER BY worst.waited_ns DESC, worst.host, worst.display, worst.session, worst.burst,
         ns DESC, waits.cause, waits.by_program NULLS FIRST, waits.request NULLS FIRST
