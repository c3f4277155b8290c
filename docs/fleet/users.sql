-- Users by their share of server time, with the time that they waited.
SELECT uid,
       CAST(count(DISTINCT program) AS BIGINT) AS programs,
       CAST(sum(server_time_ns) AS BIGINT) AS server_time_ns,
       CAST(sum(server_time_ns) AS DOUBLE) / CAST(sum(sum(server_time_ns)) OVER () AS DOUBLE) AS share,
       CAST(sum(waited_ns) AS BIGINT) AS waited_ns,
       CAST(max(longest_wait_ns) AS BIGINT) AS longest_wait_ns
FROM clients
WHERE uid IS NOT NULL
GROUP BY uid
ORDER BY server_time_ns DESC, uid
