ALTER TABLE reclaim.customer_told DROP COLUMN remaining_micros;
