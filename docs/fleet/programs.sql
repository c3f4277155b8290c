-- Programs by server time.
SELECT program,
       CAST(count(DISTINCT session) AS BIGINT) AS sessions,
       CAST(sum(requests) AS BIGINT) AS requests,
       CAST(sum(server_time_ns) AS BIGINT) AS server_time_ns,
       CAST(sum(server_time_ns) AS DOUBLE) / CAST(sum(sum(server_time_ns)) OVER () AS DOUBLE) AS share
FROM clients
GROUP BY program
ORDER BY server_time_ns DESC, program
