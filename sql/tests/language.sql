-- The language of a customer's mails.
BEGIN;
SELECT plan(8);

UPDATE reclaim.installation SET mails = true;
CREATE TEMP TABLE c AS SELECT gen_random_uuid() AS id;
INSERT INTO reclaim.customer_customers (id) SELECT id FROM c;
SELECT is(reclaim.customer_languages(ARRAY[id]), ARRAY[NULL::text], 'is not known without a column for it') FROM c;

SELECT set_config('reclaim.language', 'de', true);
UPDATE reclaim.customer_customers SET status = 'frozen';
SELECT is((SELECT payload ->> 'language' FROM reclaim.work_items WHERE kind = 'mail'), 'de', 'of a request goes with its mail');
DELETE FROM reclaim.work_items;
SELECT set_config('reclaim.language', '', true);
SELECT is(reclaim.customer_languages(ARRAY[id]), ARRAY['de'], 'of the owner''s last request is known from then on') FROM c;
UPDATE reclaim.customer_customers SET status = 'active';
SELECT is((SELECT payload FROM reclaim.work_items WHERE kind = 'mail'),
  jsonb_build_object('template', 'customer-recovered', 'customer_id', id), 'is not there when no request said one') FROM c;
SELECT is(reclaim.customer_languages(ARRAY[id]), ARRAY['de'], 'stays when no request said another') FROM c;

ALTER TABLE reclaim.customer_customers ADD COLUMN language text;
UPDATE reclaim.customer_customers SET language = 'de-AT';
SELECT is(reclaim.customer_languages(ARRAY[gen_random_uuid(), id]), ARRAY[NULL, 'de-AT'], 'is the team''s own column''s') FROM c;

DELETE FROM reclaim.work_items;
SELECT reclaim.clear_customers(ARRAY[id], ARRAY['sealed'], NULL) FROM c;
SELECT is((SELECT payload ->> 'language' FROM reclaim.work_items WHERE kind = 'mail'), 'de-AT', 'goes with the last mail, since it may be cleared');
SELECT is((SELECT language FROM reclaim.customer_told JOIN c ON c.id = customer_id), NULL, 'is not kept of who was deleted');

SELECT * FROM finish();
ROLLBACK;
