DROP TABLE reclaim.installation;
