-- The queue under the names of the LCC's design of 2001 (its chapters "QDB Content" and "QPSDB Content"), to look at.
-- Table names have to be case-sensitive, as they are on Linux: mariadb lcc < contrib/mariadb/seed-views.sql
-- STARTTIMESLOT is -1 where fetching is permitted now, else the hour of the week (Monday 0 h = 0) of the next opening.

CREATE OR REPLACE SQL SECURITY INVOKER VIEW QSLOTS AS
SELECT part.psetid, part.timeofday, part.pid, part.pri, CASE
    WHEN part.ahead = 0 THEN -1
    ELSE (part.hour_of_week + part.ahead) MOD 168
  END AS STARTTIMESLOT
FROM (
  SELECT own.*, (
      SELECT MIN(hours.seq) FROM seq_0_to_167 AS hours
      WHERE SUBSTR(own.url_hours, (own.hour_of_week + hours.seq) MOD 168 + 1, 1) = '1'
        AND SUBSTR(own.provider_hours, (own.hour_of_week + hours.seq) MOD 168 + 1, 1) = '1'
    ) AS ahead
  FROM (
    SELECT q.psetid, q.timeofday, q.pid, q.pri,
      IF(q.timeofday = '', REPEAT('1', 168), REPEAT(q.timeofday, 168 DIV LENGTH(q.timeofday))) AS url_hours,
      IF(p.timeofday = '', REPEAT('1', 168), REPEAT(p.timeofday, 168 DIV LENGTH(p.timeofday))) AS provider_hours,
      WEEKDAY(COALESCE(CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', p.timezone), NOW())) * 24
        + HOUR(COALESCE(CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', p.timezone), NOW())) AS hour_of_week
    FROM qpsdb AS q JOIN pidb AS p ON p.pid = q.pid
  ) AS own
) AS part;

-- URL is the key once more: the design looks FIRSTURL up in it.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW QDB AS
SELECT LOWER(HEX(q.urlkey)) AS URLKEY, q.pid AS PID, q.psetid AS PSETID,
  COALESCE(LOWER(HEX(LEAD(q.urlkey) OVER
    (PARTITION BY q.psetid, s.STARTTIMESLOT ORDER BY q.position))), '') AS NEXTURLINSET,
  UPPER(q.operation) AS OPERATION, LOWER(HEX(q.urlkey)) AS URL, s.STARTTIMESLOT,
  q.curl AS CURL, q.furl AS FURL, q.burl AS BURL, q.mimetype AS MIMETYPE, q.subtype AS SUBTYPE,
  q.mtime AS MTIME, q.len AS LEN, q.md5 AS MD5, q.timeofday AS TIMEOFDAY, q.tries AS TRIES
FROM qdb AS q JOIN QSLOTS AS s ON s.psetid = q.psetid AND s.timeofday = q.timeofday;

CREATE OR REPLACE SQL SECURITY INVOKER VIEW QPSDB AS
SELECT DISTINCT q.psetid AS PSETID, q.pid AS PID, s.STARTTIMESLOT, s.pri AS PRI,
  LOWER(HEX(FIRST_VALUE(q.urlkey) OVER
    (PARTITION BY q.psetid, s.STARTTIMESLOT ORDER BY q.position))) AS FIRSTURL,
  LOWER(HEX(FIRST_VALUE(q.urlkey) OVER
    (PARTITION BY q.psetid, s.STARTTIMESLOT ORDER BY q.position DESC))) AS LASTURL
FROM qdb AS q JOIN QSLOTS AS s ON s.psetid = q.psetid AND s.timeofday = q.timeofday;
