-- The twenty sessions with the most avoidable round trips, and the main reason for them.
WITH reasons AS (
    SELECT host, display, day, session, reason, CAST(sum(avoidable) AS BIGINT) AS avoidable
    FROM round_trips
    WHERE avoidable > 0
    GROUP BY host, display, day, session, reason
), main AS (
    SELECT host, display, day, session, reason, avoidable,
           row_number() OVER (PARTITION BY host, display, day, session ORDER BY avoidable DESC, reason) AS place
    FROM reasons
), sums AS (
    SELECT host, display, day, session,
           CAST(count(*) AS BIGINT) AS connections,
           CAST(sum(round_trips) AS BIGINT) AS round_trips,
           CAST(sum(avoidable) AS BIGINT) AS avoidable,
           CAST(sum(reply_wait_ns) AS BIGINT) AS reply_wait_ns
    FROM connections
    GROUP BY host, display, day, session
)
SELECT sums.host, sums.display, sums.day, sums.session, sums.connections, sums.round_trips, sums.avoidable,
       sums.reply_wait_ns, main.reason, main.avoidable AS of_this_reason
FROM sums
JOIN main ON main.host = sums.host AND main.display = sums.display AND main.day = sums.day
         AND main.session = sums.session AND main.place = 1
ORDER BY sums.avoidable DESC, sums.host, sums.display, sums.day, sums.session
LIMIT 20
