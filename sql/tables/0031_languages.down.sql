ALTER TABLE reclaim.customer_told DROP COLUMN language;
