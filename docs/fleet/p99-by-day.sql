-- Response times by day: median, 99th percentile and maximum.
WITH ranked AS (
    SELECT day, response_ns,
           row_number() OVER (PARTITION BY day ORDER BY response_ns) AS place,
           count(*) OVER (PARTITION BY day) AS bursts
    FROM bursts
)
SELECT day,
       CAST(max(bursts) AS BIGINT) AS bursts,
       CAST(min(CASE WHEN place * 100 >= bursts * 50 THEN response_ns END) AS BIGINT) AS p50_ns,
       CAST(min(CASE WHEN place * 100 >= bursts * 99 THEN response_ns END) AS BIGINT) AS p99_ns,
       CAST(max(response_ns) AS BIGINT) AS worst_ns
FROM ranked
GROUP BY day
ORDER BY day
