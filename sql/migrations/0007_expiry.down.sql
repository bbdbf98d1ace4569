SELECT 1; -- scratch
