DROP FUNCTION reclaim.remind(bigint, bigint, bigint, integer);
DROP FUNCTION reclaim.cascade_redrive(uuid, text), reclaim.cascade_receive(uuid, text, boolean, bigint, text);
DROP FUNCTION reclaim.cascade_page(text, integer), reclaim.cascade_put_off(text);
DROP FUNCTION reclaim.cascade_delete(reclaim.cascade_participants, uuid[]), reclaim.erasures_settle(uuid[]);
DROP FUNCTION reclaim.cascade_add(text, text, text, text, text[], integer, boolean);
DROP FUNCTION reclaim.cascade_lack(reclaim.cascade_participants), reclaim.cascade_type(reclaim.cascade_participants),
  reclaim.cascade_condition(reclaim.cascade_participants), reclaim.cascade_command(reclaim.cascade_participants);
DROP FUNCTION reclaim.delete_customers(uuid[], text[], text, text, uuid, uuid), reclaim.customer_columns_to_clear();
DROP FUNCTION reclaim.remove_users(uuid[]), reclaim.alias_users(uuid[]);
DROP FUNCTION reclaim.personal_tables(), reclaim.personal_columns(), reclaim.pause_after(integer);
DROP TABLE reclaim.reminders, reclaim.cascade_receipts, reclaim.erasures, reclaim.cascade_participants;
