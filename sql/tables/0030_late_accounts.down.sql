DROP TABLE reclaim.customer_frozen, reclaim.erasure_late;
