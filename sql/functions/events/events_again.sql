-- After a restore: gives events that consumers may have dropped the epoch p_epoch, and has them published again. p_since: shortly before
-- what was lost was first written, null for never; whatever was changed from then on was changed after the backup, or shortly before
-- it. p_until: the last epoch of what was lost; consumers took events of later ones.
--
-- Those that waited for the broker at the backup get it too: it may have had newer ones of the same customers. Of one customer the last
-- events are taken, or none, so that their order stays. What is published again is another event, with another id: a consumer may drop
-- what has an id that it knows.
CREATE OR REPLACE FUNCTION reclaim.events_again(p_epoch integer, p_until integer, p_since timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_from bigint := 9223372036854775807;
  -- Without a broker no event is ever published.
  v_broker boolean := coalesce((SELECT o.published_at IS NOT NULL FROM reclaim.event_outbox o ORDER BY o.position LIMIT 1), false);
  v_ids uuid[];
BEGIN
  IF p_since IS NOT NULL THEN
    v_from := coalesce((SELECT o.position FROM reclaim.event_outbox o WHERE o.created_at < p_since ORDER BY o.position DESC LIMIT 1), 0);
  END IF;
  v_ids := ARRAY(SELECT o.id FROM reclaim.event_outbox o
    WHERE (o.position > v_from OR v_broker AND o.published_at IS NULL) AND o.epoch <= p_until
      AND NOT EXISTS (SELECT FROM reclaim.event_outbox n WHERE n.customer_id = o.customer_id AND n.position > o.position
        AND (n.epoch > p_until OR n.position <= v_from AND n.published_at IS NOT NULL OR n.sequence = o.sequence)));
  DELETE FROM reclaim.event_returns WHERE event_id = ANY (v_ids); -- they get another try
  UPDATE reclaim.event_outbox SET id = gen_random_uuid(), epoch = p_epoch, published_at = NULL WHERE id = ANY (v_ids);
  PERFORM pg_notify('reclaim_events', '');
  RETURN cardinality(v_ids);
END
$$;
REVOKE ALL ON FUNCTION reclaim.events_again FROM PUBLIC;
