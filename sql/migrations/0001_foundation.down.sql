DROP FUNCTION reclaim.sees_all_rows(regclass, text);
DROP TABLE reclaim.installation;
